//go:build !(js && wasm)

// Command clifftop-wasm is the simulator for a browser. Build it with GOOS=js GOARCH=wasm; on other platforms it only
// prints an error.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "clifftop-wasm runs only in a browser (want GOOS=js GOARCH=wasm go build, "+
		"or clifftop play)")
	os.Exit(2)
}
