module clifftop/ci

go 1.26.0

require (
	golang.org/x/tools v0.51.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/goccy/go-yaml v1.19.2 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

require (
	clifftop v0.0.0
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

replace clifftop => ..
