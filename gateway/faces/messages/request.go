package messages

import (
	"slices"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// Bounds of a request.
const (
	maxMessages = 100_000 // the API's own (AM-06)
	maxBlocks   = 1 << 16 // of all messages: what is read of a block takes more than its bytes
	maxTools    = 1 << 10
)

// readRequest reads the body of a request. Its error is a *turns.Failure.
func readRequest(body []byte) (*request, error) {
	members, model, err := turns.ReadBody(body)
	if err != nil {
		return nil, err
	}
	r := &request{members: members, model: model}
	if r.stream, err = turns.Flag(members, "stream", false); err != nil {
		return nil, err
	}
	if r.tools, err = readTools(members.Get("tools")); err != nil {
		return nil, err
	}
	if err = r.readChoice(); err != nil {
		return nil, err
	}
	h, err := readHistory(members.Get("messages"))
	if err != nil {
		return nil, err
	}
	r.changes, r.unknownBlock = h.changes, h.unknown
	return r, nil
}

// readChoice reads tool_choice (AM-15).
func (r *request) readChoice() error {
	const param = "tool_choice"
	raw := r.members.Get(param)
	if raw == nil {
		return nil
	}
	o, _ := rawjson.Members(raw)
	kind, _ := rawjson.String(o.Get("type"))
	switch kind {
	case "auto":
	case "any":
		r.choice.Required = true
	case "none":
		r.choice.None = true
	case "tool":
		name, _ := rawjson.String(o.Get("name"))
		if !slices.ContainsFunc(r.tools, func(t toolEntry) bool { return t.name == name && name != "" }) {
			return bad(param, "\"tool_choice\" names a tool that is not in \"tools\".")
		}
		r.choice = turns.ToolChoice{Required: true, Names: []string{name}, Forced: true}
	default:
		return bad(param, "\"tool_choice\" must be an object of the type auto, any, tool or none.")
	}
	switch string(o.Get("disable_parallel_tool_use")) {
	case "", "false":
	case "true":
		r.singleCall = true
	default:
		return bad(param, "\"disable_parallel_tool_use\" must be true or false.")
	}
	return nil
}
