package planted

var below = map[string][]string{".": nil, "sim": nil, "cmd/clifftop": nil, "names": nil}
