package oxp

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

const (
	maxBodyDepth = 500 // beside the input, which the kernel bounds
	maxToolID    = 256 // in bytes
	maxCallID    = 255 // likewise
)

// MaxBody is the longest body, in bytes, for a longest input.
func MaxBody(maxBytes int) int { return maxBytes + 64<<10 }

// callRequest is the body of a call:
//
//	{"tool_id", "call_id"?, "trace_id"?, "input"?, "context"?: {"user_id"?, …}}
type callRequest struct {
	tool, version   string // the version is exact, or empty for the highest
	callID          string // empty where the caller has none
	traceID, userID string
	input           []byte // as it was sent, not judged yet
}

var (
	toolID       = regexp.MustCompile(`^([A-Za-z0-9_]+\.[A-Za-z0-9_]+)(?:@([0-9]+|[0-9]+\.[0-9]+\.[0-9]+))?$`)
	plainVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
)

// readBody reads a body, whose object is closed. Its error names the fault. The kernel
// judges the input: a call with an invalid one is refused, and recorded as a call.
func readBody(data []byte) (callRequest, error) {
	rest := data
	from, to := parser.Span(data, "input")
	if from < to {
		// Anything as long, so that what is wrong elsewhere is where it is said to be.
		rest = slices.Concat(data[:from], []byte("0"), bytes.Repeat([]byte(" "), to-from-1), data[to:])
	}
	value, err := parser.ReadValue(rest, maxBodyDepth)
	if err != nil {
		return callRequest{}, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return callRequest{}, errors.New("found no object; expected one with tool_id")
	}
	dropNulls(object)
	if _, there := object["tool_id"]; !there {
		return callRequest{}, errors.New(`"tool_id" is missing`)
	}
	a := callRequest{input: []byte("{}")}
	for name, v := range object {
		switch name {
		case "tool_id":
			err = a.readTool(v)
		case "call_id":
			if a.callID, err = readText(name, v, maxCallID); err == nil && a.callID == "" {
				err = errors.New(`"call_id" is empty`)
			}
		case "trace_id":
			a.traceID, err = readText(name, v, server.MaxValueBytes)
		case "input":
			a.input = data[from:to:to]
		case "context":
			err = a.readContext(v)
		case "request":
			err = errors.New(`unknown member "request": the members of a call stand in the body itself`)
		default:
			err = fmt.Errorf("unknown member %s", parser.Quote(name))
		}
		if err != nil {
			return callRequest{}, err
		}
	}
	return a, nil
}

// dropNulls drops the members of an object that are null: they are absent.
func dropNulls(object map[string]any) {
	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })
}

func (a *callRequest) readTool(v any) error {
	id, ok := v.(string)
	parts := toolID.FindStringSubmatch(id)
	if !ok || len(id) > maxToolID || parts == nil {
		return errors.New(`"tool_id" must be Toolkit.Tool, with @x or @x.y.z behind it or not`)
	}
	a.tool, a.version = parts[1], parts[2]
	if a.version != "" && !strings.Contains(a.version, ".") {
		a.version += ".0.0"
	}
	return nil
}

// readContext reads the user that the call is for. It reads nothing else: the operator
// configures the credentials that a tool needs, and a caller's are not passed on.
func (a *callRequest) readContext(v any) (err error) {
	object, ok := v.(map[string]any)
	if !ok {
		return errors.New(`"context" must be an object`)
	}
	dropNulls(object)
	for _, name := range []string{"authorization", "secrets"} {
		given, there := object[name]
		list, ok := given.([]any)
		if there && !ok {
			return fmt.Errorf(`"context.%s" must be a list`, name)
		}
		if len(list) > 0 {
			return fmt.Errorf(`"context.%s" is not empty: no tool here asks for it, and nothing of it was passed on`, name)
		}
	}
	if v, there := object["user_id"]; there {
		a.userID, err = readText("context.user_id", v, server.MaxValueBytes)
	}
	return err
}

// readText reads a bounded string of visible text.
func readText(name string, v any, most int) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%q must be a string", name)
	}
	if len(s) > most || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("%q must be at most %d bytes of what can be printed", name, most)
	}
	return s, nil
}

// kernelRequest returns the request to the kernel. A value that a header repeats must be
// the same.
func (a *callRequest) kernelRequest(r gateway.Request) (gateway.Request, *refusal.Error) {
	for _, field := range []struct {
		header *string
		body   string
		what   string
	}{{&r.User, a.userID, "context.user_id"}, {&r.ID, a.traceID, "trace_id"}} {
		if field.body != "" && *field.header != "" && *field.header != field.body {
			return r, bad("A header says something else than %q of the body.", field.what)
		}
		if field.body != "" {
			*field.header = field.body
		}
	}
	return r, nil
}

func bad(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...))
}
