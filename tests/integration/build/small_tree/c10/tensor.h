#pragma once
namespace c10 {
long count(long value);
}
