package main

import "planted/sim"

func main() { sim.New().Go(false) }
