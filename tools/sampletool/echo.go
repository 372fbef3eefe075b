package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
)

// echo is the tool /echo: it returns the object that it was given, byte for
// byte, so that what was sent can be compared with what arrived.
func echo(_ context.Context, body []byte) (any, error) {
	if !json.Valid(body) || !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return nil, malformed()
	}
	return verbatim(slices.Concat([]byte(`{"echo":`), body, []byte("}\n"))), nil
}
