"""`tdbg shell`: expressions one after the other, each in a fork of one interpreter that has torch imported."""
