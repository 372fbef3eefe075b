package registry

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// LoadError is one fault of one definition. It speaks to the operator and holds
// nothing but what the author of the definition wrote.
type LoadError struct {
	Tool int    // index in the list given to New
	Name string // the tool's name as written
	// Field is the way of keys from the definition to the faulty one, for
	// example ["input_schema"] or ["run", "url"].
	Field []string
	// Pointer is a JSON Pointer (RFC 6901) inside the schema that Field names,
	// "" at its root. It may name a place that is missing.
	Pointer string
	Message string // what was found and what was expected
	// Undeclared says that the fault is an object schema which declares no
	// members, at Pointer: additionalProperties there would mend it.
	Undeclared bool
}

// undeclared is the message of a LoadError that is Undeclared.
const undeclared = "found an object of which no member is declared; expected properties, or additionalProperties: true (any members) or false (none)"

// Error is the operator's line without file and line, which the reader of the
// file adds from Tool, Field and Pointer.
func (e *LoadError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tool %s", quote(e.Name))
	if len(e.Field) > 0 {
		b.WriteString(": " + strings.Join(e.Field, "."))
	}
	if e.Pointer != "" {
		b.WriteString(" at " + e.Pointer)
	}
	return b.String() + ": " + e.Message
}

// fault is a fault of a schema before its tool is known.
type fault struct {
	pointer string
	message string
}

// maxFaults bounds what one schema reports: beyond it the rest is noise.
const maxFaults = 20

// quote renders a short text of the author or of the model so that nothing in
// it hides, breaks the line or goes on for ever.
func quote(s string) string { return strconv.Quote(shorten(s)) }

// maxShown is the number of runes of a foreign name that a message shows.
const maxShown = 64

func shorten(s string) string {
	n := 0
	for i := range s {
		if n == maxShown {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

func ordinal(i int) string { return "number " + strconv.Itoa(i+1) }

func child(pointer, token string) string {
	return pointer + "/" + refusal.EscapePointer(token)
}

func childIndex(pointer string, i int) string {
	return pointer + "/" + strconv.Itoa(i)
}
