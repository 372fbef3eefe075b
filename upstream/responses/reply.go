package responses

import (
	"bytes"
	"cmp"
	"math"
	"strconv"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/strictjson"
)

// Bounds of a reply.
const (
	DefaultMaxBytes = 8 << 20
	maxItems        = 1024
	maxCalls        = 128
)

// Options say what a reply may hold. The zero value is the strictest.
type Options struct {
	// Hosted are the types of items that the provider acts on, and that may occur. With
	// program, function calls by a program may occur too.
	Hosted map[string]bool
	// Unknown allows items and events of unknown types.
	Unknown bool
	// Async allows calls whose result may come later than the next turn.
	Async bool
	// MaxBytes bounds a reply that is put together from a stream; 0 is DefaultMaxBytes.
	MaxBytes int
}

// Reply is one reply of a model.
type Reply struct {
	ID, Model string
	CreatedAt []byte // a number, as it was written; nil if absent
	// Status is completed, incomplete or any other word that the provider sent; in_progress
	// while a stream has not ended.
	Status string
	// IncompleteReason is why the reply is incomplete; it may be empty.
	IncompleteReason string
	Items            []*Item
	// Usage is the object, or nil; its numbers are zero where it does not state them.
	Usage                                  []byte
	InputTokens, OutputTokens, TotalTokens int64
	// Members are the other members of the response object, in their order: echoes of the
	// request and the like.
	Members []Member

	ids, callIDs map[string]bool
	calls        int
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value []byte // strict JSON
}

// Complete reports whether the calls of the reply may be used: it ended as completed.
func (r *Reply) Complete() bool { return r.Status == "completed" }

// Read reads a whole reply. The error is a *refusal.Error or a *ProviderError.
func Read(body []byte, o Options) (*Reply, error) {
	if strictjson.Deeper(body, maxDepth) {
		return nil, malformed("a reply that is nested too deeply")
	}
	if err := strictjson.Check(body, maxDepth); err != nil {
		return nil, unreadable(err)
	}
	start := bytes.IndexByte(body, '{')
	if start < 0 || len(bytes.TrimLeft(body[:start], " \t\r\n")) > 0 {
		return nil, malformed("a reply that is not an object")
	}
	r := &Reply{}
	output, err := r.readResponse(body[start:])
	if err != nil {
		return nil, err
	}
	if err := r.readOutput(output, &o, func(_ int, item *Item) error { return r.add(item) }); err != nil {
		return nil, err
	}
	return r, nil
}

// readResponse reads a response object but for its output, which it returns. Members that
// were read from an earlier event of a stream are replaced.
func (r *Reply) readResponse(raw []byte) (output []byte, err error) {
	var id, object, model, status, failure, details []byte
	r.Members, r.Usage = make([]Member, 0, 24), nil
	if err := members(raw, func(name, value []byte) error {
		switch string(name) {
		case "id":
			id = value
		case "object":
			object = value
		case "model":
			model = value
		case "status":
			status = value
		case "error":
			failure = value
		case "incomplete_details":
			details = value
		case "output":
			output = value
		case "created_at":
			r.CreatedAt = value
		case "usage":
			if !isNull(value) {
				r.Usage = value
			}
		default:
			r.Members = append(r.Members, Member{string(name), value})
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if !isNull(failure) { // some providers send nothing else
		return nil, providerError(failure)
	}
	name, ok := word(id)
	if !ok || !ascii.IsPlainID(name) {
		return nil, malformed("a response without a plain id")
	}
	r.ID = cmp.Or(r.ID, name) // one provider makes up another for each event (RS-46)
	if kind, ok := optional(object); !ok || kind != "" && kind != "response" {
		return nil, malformed("an object that is not a response")
	}
	if model != nil {
		if r.Model, ok = optional(model); !ok {
			return nil, malformed("a model that is not a string")
		}
	}
	if r.CreatedAt != nil && (len(r.CreatedAt) > 32 || r.CreatedAt[0] < '0' || r.CreatedAt[0] > '9') {
		r.CreatedAt = nil
	}
	if r.Status, ok = optional(status); !ok {
		return nil, malformed("a status that is not a string")
	}
	if r.IncompleteReason, ok = optional(member(details, "reason")); !ok {
		return nil, malformed("a reason that is not a string")
	}
	r.readUsage()
	if r.Status == "failed" || r.Status == "cancelled" {
		return nil, providerError(nil)
	}
	return output, nil
}

// readUsage reads the numbers of the usage. One that cannot be read is none: it decides nothing about the
// answer.
func (r *Reply) readUsage() {
	if r.Usage == nil {
		return
	}
	var input, output, total int64
	if r.Usage[0] != '{' || members(r.Usage, func(name, value []byte) (err error) {
		switch string(name) {
		case "input_tokens":
			input, err = count(value)
		case "output_tokens":
			output, err = count(value)
		case "total_tokens":
			total, err = count(value)
		}
		return err
	}) != nil {
		r.Usage = nil
		return
	}
	r.InputTokens, r.OutputTokens, r.TotalTokens = input, output, total
}

// count reads a number of tokens, which some servers write as 12.0 or null.
func count(value []byte) (int64, error) {
	if isNull(value) {
		return 0, nil
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f < 0 || f > 1<<53 || f != math.Trunc(f) {
		return 0, malformed("a number of tokens that is not a whole number from 0 on")
	}
	return int64(f), nil
}

// providerError reads the error of a response, of an event, or none. Some providers write a
// string.
func providerError(raw []byte) *ProviderError {
	e := &ProviderError{}
	if text, ok := literal(raw); ok {
		e.Message = cut(text)
		return e
	}
	for name, into := range map[string]*string{"type": &e.Type, "code": &e.Code, "message": &e.Message} {
		value := member(raw, name)
		if text, ok := literal(value); ok {
			*into = cut(text)
		} else if _, err := number(value); err == nil { // a status, as the code
			*into = string(value)
		}
	}
	return e
}

// cut bounds a text of the provider.
func cut(text []byte) string {
	const most = 4 << 10
	if len(text) > most {
		text = bytes.ToValidUTF8(text[:most], nil)
	}
	return string(text)
}

// readOutput reads the items of a response. No output is an empty one.
func (r *Reply) readOutput(output []byte, o *Options, take func(at int, item *Item) error) error {
	if isNull(output) {
		return nil
	}
	if output[0] != '[' {
		return malformed("an output that is not a list")
	}
	at := 0
	return elements(output, func(raw []byte) error {
		if raw[0] != '{' {
			return malformed("an item that is not an object")
		}
		item, err := readItem(raw, o, true)
		if err != nil {
			return err
		}
		at++
		return take(at-1, item)
	})
}

// add adds an item whose ids are its own.
func (r *Reply) add(item *Item) error {
	if r.ids == nil {
		r.ids, r.callIDs = map[string]bool{}, map[string]bool{}
	}
	isCall := item.Class == Call || item.Class == Approval
	if isCall {
		r.calls++
	}
	switch {
	case len(r.Items) == maxItems, r.calls > maxCalls:
		return tooLarge("a reply of more than %d items or %d calls", maxItems, maxCalls)
	case item.ID != "" && r.ids[item.ID] && item.Class != Reasoning: // which one provider's share (R)
		return malformed("two items with one id")
	case isCall && r.callIDs[item.Call.ID]:
		return malformed("two calls with one id")
	}
	r.ids[item.ID] = true
	item.writeArguments()
	if isCall {
		r.callIDs[item.Call.ID] = true
	}
	r.Items = append(r.Items, item)
	return nil
}
