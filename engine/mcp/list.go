package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/tool"
)

const (
	maxPages     = 1000
	maxTools     = 10_000
	maxListBytes = 32 << 20 // of all pages
	maxCursor    = 4 << 10
)

// listWithin reads the whole list within a time; 0 is that of ctx.
func (s *session) listWithin(ctx context.Context, limit time.Duration) ([]tool.Definition, error) {
	if limit > 0 {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = bounded
	}
	return s.list(ctx)
}

// list reads the whole list of a server's tools, and stores which of their arguments headers
// repeat. The error of a list that cannot be used is a *tool.InvalidListError.
func (s *session) list(ctx context.Context) ([]tool.Definition, error) {
	l := toolList{left: maxListBytes, places: map[string]int{}, headers: map[string][]headerBinding{}}
	cursor := ""
	for range maxPages {
		next, err := l.page(ctx, s, cursor)
		if err != nil {
			return nil, err
		}
		if next == "" {
			s.headers.Store(&l.headers)
			return l.found, nil
		}
		if next == cursor {
			return nil, unreadableList("its list of tools goes in a circle")
		}
		cursor = next
	}
	return nil, unreadableList("its list of tools has more than %d pages", maxPages)
}

// unreadableList is the error of a list that cannot be used.
func unreadableList(format string, args ...any) error {
	return &tool.InvalidListError{Err: refuse.Reason(fmt.Sprintf(format, args...))}
}

// toolList reads a list, page by page.
type toolList struct {
	left    int64
	found   []tool.Definition
	read    int            // elements
	places  map[string]int // of the tools in found, by their names
	headers map[string][]headerBinding
}

// page reads the page at a cursor, and returns the cursor of the next.
func (l *toolList) page(ctx context.Context, s *session, cursor string) (string, error) {
	var at []byte
	if cursor != "" {
		at = append([]byte(`"cursor":`), encodeJSON(cursor)...)
	}
	q := s.newRequest(wire.MethodTools, s.meta(nil), at)
	q.limit = l.left
	a := s.do(ctx, q)
	switch {
	case a.tooLarge, a.invalid != "":
		return "", &tool.InvalidListError{Err: a.asError()}
	case a.result == nil:
		return "", a.asError()
	}
	s.answered.Store(true)
	if l.left -= int64(len(a.result)); l.left <= 0 {
		return "", &tool.InvalidListError{Err: errTooLarge}
	}
	members, ok := object(a.result)
	tools, list := array(members["tools"])
	var next string
	if !ok || !list || !isComplete(members) || !optionalString(members["nextCursor"], &next) || len(next) > maxCursor {
		return "", unreadableList("its list of tools cannot be read")
	}
	if len(l.found)+len(tools) > maxTools {
		return "", unreadableList("it has more than %d tools", maxTools)
	}
	for _, tool := range tools {
		l.add(tool)
	}
	return next, nil
}

// isComplete reports whether a result is complete, as all results of the older revisions
// are.
func isComplete(members map[string]json.RawMessage) bool {
	return members[wire.MemberResultType] == nil || isString(members[wire.MemberResultType], wire.ResultComplete)
}

// add adds one tool. One that cannot be read, or has the name of another, costs no other tool.
func (l *toolList) add(b json.RawMessage) {
	l.read++
	d, headers := l.tool(b)
	i, twice := l.places[d.Name]
	switch {
	case d.Name == "":
	case twice && reflect.DeepEqual(l.found[i], d):
		return // the same once more
	case twice:
		l.found[i].Unusable = "its list has several tools of this name"
		delete(l.headers, d.Name)
		return
	case len(headers) > 0 && d.Unusable == "":
		l.headers[d.Name] = headers
	}
	l.places[d.Name] = len(l.found)
	l.found = append(l.found, d)
}

// tool reads one tool, and which of its arguments headers repeat. It does not read the annotations, because
// nothing is granted on a server's word.
func (l *toolList) tool(b json.RawMessage) (d tool.Definition, headers []headerBinding) {
	members, ok := object(b)
	d.InputSchema, d.OutputSchema = members["inputSchema"], members["outputSchema"]
	_ = optionalString(members["title"], &d.Title) // which decides nothing
	headers, err := readHeaderBindings(d.InputSchema)
	switch {
	case !ok, !optionalString(members["name"], &d.Name), d.Name == "":
		d.Name, d.Unusable = "", fmt.Sprintf("tool %d of its list has no name", l.read)
	case !optionalString(members["description"], &d.Description):
		d.Unusable = "its description is not a text"
	case d.InputSchema == nil:
		d.Unusable = "it has no input schema"
	case err != nil:
		d.Unusable = err.Error()
	}
	return d, headers
}
