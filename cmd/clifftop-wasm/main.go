//go:build js && wasm

// Command clifftop-wasm is the simulator for a browser. It defines a global function clifftop(method, arguments,
// progress). Arguments and results are JSON. progress may be null; otherwise it is called with the number of finished
// and of total runs. playground.Player.Answer defines the methods.
//
//	GOOS=js GOARCH=wasm go build -ldflags='-s -w' -o clifftop.wasm ./cmd/clifftop-wasm
//
// clifftop play builds it and serves a page that uses it.
package main

import (
	"context"
	"runtime/debug"
	"syscall/js"

	"clifftop/experiments/playground"
)

func main() {
	// Runs are short and allocate much, and a page has enough memory: collect garbage less often.
	debug.SetGCPercent(400)
	var player playground.Player
	js.Global().Set("clifftop", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var progress func(done, total int)
		if len(args) > 2 && args[2].Type() == js.TypeFunction {
			progress = func(done, total int) { args[2].Invoke(done, total) }
		}
		return string(player.Call(context.Background(), args[0].String(), []byte(args[1].String()), progress))
	}))
	select {}
}
