package messages

import (
	"errors"
	"fmt"
	"strings"

	"github.com/callgate/callgate/internal/strictjson"
)

var (
	// ErrIncomplete is a stream that ended before its message_stop.
	ErrIncomplete = errors.New("the stream ended before message_stop")
	// ErrTooLarge is a reply over MaxBytes.
	ErrTooLarge = errors.New("the reply is larger than is allowed")
	// ErrUnknown is a content block, a delta or an event of a type that is not known here,
	// while Options.Unknown is false. The error that wraps it names the type.
	ErrUnknown = errors.New("of a type that is not known")
)

// ProviderError is an error event (AM-64): the provider has given up the reply.
type ProviderError struct {
	Type string // such as overloaded_error; empty if it is no plain word
	Data []byte // of the event: one strict JSON object
}

func (e *ProviderError) Error() string {
	if e.Type == "" {
		return "the provider reports a failure within the stream"
	}
	return "the provider reports a failure within the stream: " + e.Type
}

// unknown is the error of an unknown type. It quotes the type only if it is a plain word.
func unknown(what, kind string) error {
	if !isWord(kind) {
		return fmt.Errorf("%s %w", what, ErrUnknown)
	}
	return fmt.Errorf("%s %w: %s", what, ErrUnknown, kind)
}

// isWord reports whether a text is one short word of a protocol.
func isWord(s string) bool {
	return s != "" && len(s) <= maxWord && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == ""
}

// syntax describes a fault of JSON without the text.
func syntax(err error) error {
	var fault *strictjson.Error
	switch {
	case errors.As(err, &fault) && fault.Reason == strictjson.Duplicate:
		return fmt.Errorf("a name that stands twice in one object, after byte %d", fault.Offset)
	case errors.As(err, &fault):
		return fmt.Errorf("no strict JSON, after byte %d", fault.Offset)
	}
	return err
}
