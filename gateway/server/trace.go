package server

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/gin-gonic/gin"
)

// trace is the position of a request in a trace (W3C Trace Context).
type trace struct {
	id     string
	parent string // the caller's span; empty where the trace begins here
	flags  string
}

// continueTrace takes the trace of a traceparent or starts one.
func continueTrace(values []string) trace {
	if len(values) == 1 {
		if t, ok := parseTraceparent(values[0]); ok {
			return t
		}
	}
	return trace{id: randomHex(16), flags: "00"}
}

// responseHeader is the header to answer with: the same trace, a span of our own.
func (t trace) responseHeader() string { return "00-" + t.id + "-" + randomHex(8) + "-" + t.flags }

// sampled reports whether the caller traces the request: the lowest bit of the
// flags, which are two hexadecimal digits.
func (t trace) sampled() bool { return strings.LastIndexAny(t.flags, "13579bdf") == 1 }

// traceOf returns the trace of a request.
func traceOf(c *gin.Context) trace {
	v, _ := c.Get(keyTrace)
	t, _ := v.(trace)
	return t
}

// parseTraceparent reads a header of version 00.
func parseTraceparent(value string) (t trace, ok bool) {
	parts := strings.Split(value, "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 {
		return trace{}, false
	}
	for _, p := range parts[1:] {
		if strings.Trim(p, "0123456789abcdef") != "" {
			return trace{}, false
		}
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return trace{}, false
	}
	return trace{parts[1], parts[2], parts[3]}, true
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
