package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/engine"
)

const (
	maxPages     = 1000
	maxTools     = 10_000
	maxListBytes = 32 << 20 // of all pages
	maxCursor    = 4 << 10
)

// list reads the whole list of a server's tools, and keeps which arguments of them
// go into headers. The error of one that cannot be used is an *engine.UnreadableError.
func (s *session) list(ctx context.Context) ([]engine.Definition, error) {
	l := lister{left: maxListBytes, seen: map[string]bool{}, headers: map[string][]binding{}}
	cursor := ""
	for range maxPages {
		next, err := l.page(ctx, s, cursor)
		if err != nil {
			return nil, err
		}
		if next == "" {
			s.headers.Store(&l.headers)
			s.forget()
			return l.found, nil
		}
		if next == cursor {
			return nil, unreadable("its list of tools goes in a circle")
		}
		cursor = next
	}
	return nil, unreadable("its list of tools has more than %d pages", maxPages)
}

// unreadable is a list that cannot be used.
func unreadable(format string, args ...any) error {
	return &engine.UnreadableError{Err: engine.Reason(fmt.Sprintf(format, args...))}
}

// forget makes the SDK forget the lists, of which it was shown nothing.
func (s *session) forget() {
	type inside interface{ deliver(jsonrpc.Message) }
	if c, ok := s.connection.(inside); ok {
		c.deliver(&jsonrpc.Request{Method: noticeChanged})
	}
}

// lister reads a list, page by page.
type lister struct {
	left    int64
	found   []engine.Definition
	seen    map[string]bool
	headers map[string][]binding
}

// page reads the page at a cursor, and returns the cursor of the next.
func (l *lister) page(ctx context.Context, s *session, cursor string) (string, error) {
	e := &exchange{limit: l.left}
	params := &sdk.ListToolsParams{Cursor: cursor}
	_, err := s.ListTools(e.within(ctx), params)
	a := e.answer.Load()
	switch {
	case a == nil && ctx.Err() != nil:
		return "", engine.Reason("it did not list its tools in time")
	case a == nil:
		return "", ended(s.connection, err)
	case a.large, a.bad != "":
		return "", &engine.UnreadableError{Err: a.trouble()}
	case a.result == nil:
		return "", a.trouble()
	}
	s.answered.Store(true)
	if l.left -= int64(len(a.result)); l.left <= 0 {
		return "", &engine.UnreadableError{Err: errLarge}
	}
	members, ok := object(a.result)
	tools, list := array(members["tools"])
	var next string
	if !ok || !list || !complete(members) || !optionalString(present(members["nextCursor"]), &next) || len(next) > maxCursor {
		return "", unreadable("its list of tools cannot be read")
	}
	for _, tool := range tools {
		if err := l.tool(tool); err != nil {
			return "", err
		}
	}
	return next, nil
}

// complete tells whether a result is whole, as those of the older revisions always
// are.
func complete(members map[string]json.RawMessage) bool {
	return members["resultType"] == nil || isString(members["resultType"], "complete")
}

// tool reads one tool. Its annotations are not read: they are what the server says
// of itself, and nothing is granted on its word.
func (l *lister) tool(b json.RawMessage) error {
	members, ok := object(b)
	d := engine.Definition{InputSchema: members["inputSchema"], OutputSchema: present(members["outputSchema"])}
	if !ok || !optionalString(members["name"], &d.Name) || d.Name == "" ||
		!optionalString(present(members["title"]), &d.Title) || !optionalString(present(members["description"]), &d.Description) {
		return unreadable("its list holds a tool that cannot be read")
	}
	if l.seen[d.Name] {
		return unreadable("its list holds the tool %.64q twice", d.Name)
	}
	l.seen[d.Name] = true
	if len(l.seen) > maxTools {
		return unreadable("it has more than %d tools", maxTools)
	}
	headers, err := bindings(d.InputSchema)
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
