package engine_test

import (
	"io"
	"log"
)

// quiet is the log of servers that are meant to fail.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
