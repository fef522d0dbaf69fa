git_version = "0"
debug = False
cuda = None
