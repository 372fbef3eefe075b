package responses

import (
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/rawjson"
)

// conversation is the input as it is sent to the model. It only grows.
type conversation struct {
	text  []byte // a text of the request, as JSON; nil: items
	items []conversationItem
}

// conversationItem is an item: as it is, or an object with tools in it.
type conversationItem struct {
	raw    []byte
	object rawjson.Object
	tools  []definition
}

// add appends items of a turn, and returns how long they are.
func (v *conversation) add(items ...[]byte) int {
	if v.text != nil {
		message := rawjson.Object{rawjson.Field("role", rawjson.Quote("user")), rawjson.Field("content", v.text)}
		v.text, v.items = nil, []conversationItem{{raw: message.Bytes()}}
	}
	size := 0
	for _, item := range items {
		size += len(item)
		v.items = append(v.items, conversationItem{raw: item})
	}
	return size
}

// confirmation is the answer of the caller to an item of the input, and where its result goes.
type confirmation struct {
	calls.Confirmation
	at int // in the conversation
}
