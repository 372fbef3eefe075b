package chat

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
)

// verifiedLogprobs returns the member logprobs of a choice if its tokens, one after the
// other, are the text that is sent, byte for byte, and the refusal, if there is one;
// otherwise nil. A token, or an alternative to it, is sent only if it could be part of a
// text.
func verifiedLogprobs(logprobs []byte, content string, refusal *string) []byte {
	if logprobs == nil {
		return nil
	}
	members, ok := rawjson.Members(logprobs)
	if !ok || !rawjson.HoldsNoCall(logprobs) {
		return nil
	}
	of := map[string]string{"content": content, "refusal": ""}
	if refusal != nil {
		of["refusal"] = *refusal
	}
	for _, m := range members {
		want, known := of[m.Name]
		if !known || m.Value[0] != 'n' && !tokensSpell(m.Value, want) {
			return nil
		}
	}
	return logprobs
}

// tokensSpell reports whether an array of tokens is a text.
func tokensSpell(tokens []byte, text string) bool {
	var r strictjson.Reader
	r.ResetChecked(tokens)
	if r.Kind() != '[' {
		return false
	}
	err := r.Array(func() error {
		token, err := readToken(&r)
		if err != nil || !strings.HasPrefix(text, token) {
			return errOtherTokens
		}
		text = text[len(token):]
		return nil
	})
	return err == nil && text == ""
}

var errOtherTokens = errors.New("the tokens are not those of the text")

// readToken reads one token: its bytes if they are given, else its text. If both are given,
// they must agree, except for the bytes of a part of a character, which has no text.
func readToken(r *strictjson.Reader) (string, error) {
	var (
		text, raw       string
		isText, isBytes bool
	)
	if r.Kind() != '{' {
		return "", errOtherTokens
	}
	err := r.Object(func(name []byte) error {
		switch key := string(name); {
		case key == "token" && r.Kind() == '"':
			value, err := r.Text()
			text, isText = string(value), true
			return err
		case key == "bytes" && r.Kind() == '[':
			value, err := readBytes(r)
			raw, isBytes = string(value), true
			return err
		}
		_, err := r.Value()
		return err
	})
	switch {
	case err != nil:
		return "", err
	case !isText, isBytes && utf8.ValidString(raw) && text != raw:
		return "", errOtherTokens
	case isBytes:
		return raw, nil
	}
	return text, nil
}

// readBytes reads an array of numbers from 0 to 255.
func readBytes(r *strictjson.Reader) ([]byte, error) {
	var raw []byte
	err := r.Array(func() error {
		value, err := r.Value()
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(value), 10, 8)
		raw = append(raw, byte(n))
		return err
	})
	return raw, err
}
