package server

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
)

// trace is the position of a request in a trace (W3C Trace Context).
type trace struct {
	id     string
	parent string // the caller's span; empty where the trace begins here
	flags  string
}

// The places of the parts of a traceparent of version 00:
// 00-<trace id, 32 digits>-<span id, 16 digits>-<flags, 2 digits>.
const (
	traceStart  = len("00-")
	spanStart   = traceStart + 32 + 1
	flagsStart  = spanStart + 16 + 1
	traceLength = flagsStart + 2
)

// continueTrace takes the trace of a traceparent or starts one. It returns the header to
// answer with, too: the same trace, a span of our own.
func continueTrace(values []string) (trace, string) {
	var t trace
	continued := false
	if len(values) == 1 {
		t, continued = parseTraceparent(values[0])
	}
	header := [traceLength]byte{0: '0', 1: '0', 2: '-', spanStart - 1: '-', flagsStart - 1: '-', flagsStart: '0', flagsStart + 1: '0'}
	if continued {
		copy(header[traceStart:], t.id)
		copy(header[flagsStart:], t.flags)
	} else {
		randomHex(header[traceStart : spanStart-1])
	}
	randomHex(header[spanStart : flagsStart-1])
	answer := string(header[:])
	if !continued {
		t = trace{id: answer[traceStart : spanStart-1], flags: "00"}
	}
	return t, answer
}

// sampled reports whether the caller traces the request: the lowest bit of the
// flags, which are two hexadecimal digits.
func (t trace) sampled() bool { return strings.LastIndexAny(t.flags, "13579bdf") == 1 }

// parseTraceparent reads a header of version 00.
func parseTraceparent(value string) (t trace, ok bool) {
	if len(value) != traceLength || value[:traceStart] != "00-" || value[spanStart-1] != '-' || value[flagsStart-1] != '-' {
		return trace{}, false
	}
	t = trace{value[traceStart : spanStart-1], value[spanStart : flagsStart-1], value[flagsStart:]}
	for _, part := range []string{t.id, t.parent, t.flags} {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return trace{}, false
		}
	}
	if strings.Trim(t.id, "0") == "" || strings.Trim(t.parent, "0") == "" {
		return trace{}, false
	}
	return t, true
}

// randomHex fills a text with random hexadecimal digits, 16 at a time. The ids of traces are
// no secrets, so the generator of the runtime, which asks the system once, is good enough.
func randomHex(text []byte) {
	for ; len(text) > 0; text = text[16:] {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], rand.Uint64()) //nolint:gosec // see above
		hex.Encode(text, b[:])
	}
}
