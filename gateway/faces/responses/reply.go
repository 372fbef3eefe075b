package responses

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream"
)

// Bounds of a reply.
const (
	maxOutput = 1024
	maxCalls  = 128
)

// readResponse reads a response object but for its output, which it returns. Members that
// were read from an earlier event of a stream are replaced.
func (r *reader) readResponse(raw []byte) (output []byte, err error) {
	var id, object, model, status, failure, details []byte
	head, usage := make(rawjson.Object, 0, 24), []byte(nil)
	if err := rawjson.Each(raw, func(name, value []byte) error {
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
		case "usage":
			usage = value
		default:
			if (turns.NamesCalls(name) || string(name) == "choices") && !turns.IsNothing(value) {
				return errStray
			}
			head = append(head, rawjson.Field(string(name), value))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if !turns.IsNothing(failure) { // some providers send nothing else
		return nil, providerError(failure)
	}
	if r.reply.ID == "" { // one provider makes up another for each event (RS-46)
		if r.reply.ID, _ = word(id); !ascii.IsPlainID(r.reply.ID) {
			r.reply.ID = "resp_" + rand.Text()
		}
	}
	kind, ok := optional(object)
	if !ok || kind != "" && kind != "response" {
		return nil, errors.New("an object that is not a response")
	}
	if model != nil {
		if r.reply.Model, ok = optional(model); !ok {
			return nil, errors.New("a model that is not a string")
		}
	}
	if r.answer.Reason, ok = optional(status); !ok {
		return nil, errors.New("a status that is not a string")
	}
	reason, ok := optional(rawjson.MemberOf(details, "reason"))
	if !ok {
		return nil, errors.New("a reason that is not a string")
	}
	if ascii.IsPlainID(reason) {
		head = append(head, rawjson.Field(memberDetails, rawjson.Object{rawjson.Field("reason", rawjson.Quote(reason))}.Bytes()))
	}
	r.reply.Head, r.reply.Usage = head, takenOf(usage)
	if r.answer.Reason == "failed" || r.answer.Reason == "cancelled" {
		return nil, &turns.ProviderError{}
	}
	return output, nil
}

// memberDetails is why a response is incomplete.
const memberDetails = "incomplete_details"

// takenOf reads the usage. One that cannot be read is none: it decides nothing about the answer. Tokens that were read
// from a cache are part of the input's.
func takenOf(usage []byte) turns.Taken {
	var input, output, total int64
	if rawjson.IsNull(usage) || usage[0] != '{' || rawjson.Each(usage, func(name, value []byte) (err error) {
		switch string(name) {
		case "input_tokens":
			input, err = tokens(value)
		case "output_tokens":
			output, err = tokens(value)
		case "total_tokens":
			total, err = tokens(value)
		}
		return err
	}) != nil {
		return turns.Taken{}
	}
	if !rawjson.HoldsNoCall(usage) {
		usage = fmt.Appendf(nil, `{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d}`, input, output, total)
	}
	cached := min(turns.CachedTokens(usage, "input_tokens_details"), input)
	return turns.Taken{
		Tokens: max(total, turns.SaturatingAdd(input, output)), Raw: usage,
		Spent: budget.Usage{Input: input - cached, CachedInput: cached, Output: max(output, total-input)},
	}
}

// tokens reads a number of tokens, which some servers write as 12.0 or null.
func tokens(value []byte) (int64, error) {
	if rawjson.IsNull(value) {
		return 0, nil
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f < 0 || f > 1<<53 || f != math.Trunc(f) {
		return 0, errors.New("a number of tokens that is not a whole number from 0 on")
	}
	return int64(f), nil
}

// providerError reads the error of a response, of an event, or none. Some providers write a
// string.
func providerError(raw []byte) *turns.ProviderError {
	e := &turns.ProviderError{}
	if text, ok := rawjson.Text(raw); ok {
		e.Failure.Message = cut(text)
		return e
	}
	for name, into := range map[string]*string{"type": &e.Failure.Type, "code": &e.Failure.Code, "message": &e.Failure.Message} {
		value := rawjson.MemberOf(raw, name)
		if text, ok := rawjson.Text(value); ok {
			*into = cut(text)
		} else if n, err := number(value); err == nil && n >= 0 { // a status, as the code
			*into = string(value)
		}
	}
	return e
}

// failureIn is the error of a document that is no response and no event: some servers send why they failed in place of one.
func failureIn(document []byte, fault string) error {
	if failure := upstream.ReadFailure(document); failure.Message != "" {
		return &turns.ProviderError{Failure: failure}
	}
	return errors.New(fault)
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
func (r *reader) readOutput(output []byte, take func(it *item) error) error {
	if rawjson.IsNull(output) {
		return nil
	}
	if output[0] != '[' {
		return errors.New("an output that is not a list")
	}
	return rawjson.EachOf(output, func(raw []byte) error {
		if raw[0] != '{' {
			return errors.New("an item that is not an object")
		}
		it, err := r.readItem(raw, true)
		if err != nil {
			return err
		}
		return take(it)
	})
}

var (
	errSameID     = errors.New("two items with one id")
	errSameCallID = errors.New("two calls with one id")
)

// add adds an item whose ids are its own.
func (r *reader) add(it *item) error {
	if r.ids == nil {
		r.ids, r.callIDs = map[string]bool{}, map[string]bool{}
	}
	if it.isCall() {
		r.calls++
	}
	switch {
	case len(r.items) == maxOutput, r.calls > maxCalls:
		return fmt.Errorf("a reply of more than %d items or %d calls", maxOutput, maxCalls)
	case it.id != "" && r.ids[it.id] && it.Kind != turns.Thought: // which one provider's share (R)
		return errSameID
	case it.isCall() && it.call.id != "" && r.callIDs[it.call.id]:
		return errSameCallID
	}
	r.ids[it.id] = true
	if it.isCall() {
		it.own.Call = it.called()
		r.callIDs[it.call.id] = true
	}
	r.items = append(r.items, it)
	return nil
}
