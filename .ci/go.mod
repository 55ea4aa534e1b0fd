module clifftop/ci

go 1.26.0
