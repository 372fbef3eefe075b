package mcp

import (
	"context"
	"encoding/json"
	"fmt"
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
	l := toolList{left: maxListBytes, seen: map[string]bool{}, headers: map[string][]headerBinding{}}
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
	seen    map[string]bool
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
	for _, tool := range tools {
		if err := l.tool(tool); err != nil {
			return "", err
		}
	}
	return next, nil
}

// isComplete reports whether a result is complete, as all results of the older revisions
// are.
func isComplete(members map[string]json.RawMessage) bool {
	return members[wire.MemberResultType] == nil || isString(members[wire.MemberResultType], wire.ResultComplete)
}

// tool reads one tool. It does not read the annotations, because nothing is granted on a
// server's word.
func (l *toolList) tool(b json.RawMessage) error {
	members, ok := object(b)
	d := tool.Definition{InputSchema: members["inputSchema"], OutputSchema: members["outputSchema"]}
	if !ok || !optionalString(members["name"], &d.Name) || d.Name == "" ||
		!optionalString(members["title"], &d.Title) || !optionalString(members["description"], &d.Description) {
		return unreadableList("its list holds a tool that cannot be read")
	}
	if l.seen[d.Name] {
		return unreadableList("its list holds the tool %.64q twice", d.Name)
	}
	l.seen[d.Name] = true
	if len(l.seen) > maxTools {
		return unreadableList("it has more than %d tools", maxTools)
	}
	headers, err := readHeaderBindings(d.InputSchema)
	switch {
	case d.InputSchema == nil:
		d.Unusable = "it has no input schema"
	case err != nil:
		d.Unusable = err.Error()
	case len(headers) > 0:
		l.headers[d.Name] = headers
	}
	l.found = append(l.found, d)
	return nil
}
