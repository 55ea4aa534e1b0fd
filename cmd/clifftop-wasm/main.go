//go:build js && wasm

// Clifftop-wasm is the simulator for a browser. It sets a function clifftop(method, arguments, progress) in the scope that it
// is loaded into, and then waits to be called: arguments and answers are JSON, and progress, unless it is null, is called
// with the number of runs done and of all. The methods are those of playground.Player.Answer.
//
//	GOOS=js GOARCH=wasm go build -ldflags='-s -w' -o clifftop.wasm ./cmd/clifftop-wasm
//
// clifftop play builds it, and serves a page that uses it.
package main

import (
	"context"
	"runtime/debug"
	"syscall/js"

	"clifftop/experiments/playground"
)

func main() {
	// Runs are short and leave much behind, while a page has memory to spare.
	debug.SetGCPercent(400)
	var player playground.Player
	js.Global().Set("clifftop", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var progress func(done, total int)
		if len(args) > 2 && args[2].Type() == js.TypeFunction {
			progress = func(done, total int) { args[2].Invoke(done, total) }
		}
		return string(player.Answer(context.Background(), args[0].String(), []byte(args[1].String()), progress))
	}))
	select {}
}
