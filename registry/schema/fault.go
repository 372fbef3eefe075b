package schema

import (
	"strconv"

	"github.com/callgate/callgate/refusal"
)

// Fault is one fault of a schema. It holds text of the schema alone, for the operator.
type Fault struct {
	Pointer string // a JSON Pointer (RFC 6901) inside the schema; it may name a place that is missing
	Message string // what was found and what was expected
}

// maxFaults bounds what one schema reports: beyond it the rest is noise.
const maxFaults = 20

// undeclared is the message of an object schema that declares no members.
const undeclared = "found an object of which no member is declared; expected properties, or additionalProperties: true (any members) or false (none)"

func child(pointer, token string) string {
	return pointer + "/" + refusal.EscapePointer(token)
}

func childIndex(pointer string, i int) string {
	return pointer + "/" + strconv.Itoa(i)
}
