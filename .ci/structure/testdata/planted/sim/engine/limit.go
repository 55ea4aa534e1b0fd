package engine

const limit = 3
