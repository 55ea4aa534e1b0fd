//go:build !(js && wasm)

// Clifftop-wasm is the simulator for a browser, and does nothing elsewhere: it is built with GOOS=js GOARCH=wasm.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "clifftop-wasm: this runs in a browser (want GOOS=js GOARCH=wasm go build, or clifftop play, which does it)")
	os.Exit(2)
}
