package openai

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// verifiedLogprobs returns the member logprobs of a choice where its tokens, one behind the
// other, are the text that is shown, byte for byte, and the refusal, where there is one;
// else nil. A token, or one that the model might have chosen instead, is shown only
// where it could stand in a text.
func verifiedLogprobs(logprobs []byte, content string, refusal *string) []byte {
	if logprobs == nil {
		return nil
	}
	members, ok := readMembers(logprobs)
	if !ok || !holdsNoCall(logprobs) {
		return nil
	}
	of := map[string]string{"content": content, "refusal": ""}
	if refusal != nil {
		of["refusal"] = *refusal
	}
	for _, m := range members {
		want, known := of[m.name]
		if !known || m.value[0] != 'n' && !tokensSpell(m.value, want) {
			return nil
		}
	}
	return logprobs
}

// tokensSpell tells whether an array of tokens is a text.
func tokensSpell(tokens []byte, text string) bool {
	if tokens[0] != '[' {
		return false
	}
	d := jsontext.NewDecoder(bytes.NewReader(tokens), lenientDecoding...)
	_, _ = d.ReadToken() // the bracket
	for d.PeekKind() == '{' {
		token, ok := readToken(d)
		if !ok {
			return false
		}
		if text, ok = strings.CutPrefix(text, token); !ok {
			return false
		}
	}
	return d.PeekKind() == ']' && text == ""
}

// readToken reads one token: its bytes where they are given, else its text. Where both
// are, they must agree, but for the bytes of a part of a character, which has no text.
func readToken(d *jsontext.Decoder) (token string, ok bool) {
	var (
		text       string
		raw        []byte
		named, has bool
	)
	_, _ = d.ReadToken() // the brace
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return "", false
		}
		switch key := name.String(); {
		case key == "token" && d.PeekKind() == '"':
			value, err := d.ReadToken()
			if err != nil {
				return "", false
			}
			text, named = value.String(), true
		case key == "bytes" && d.PeekKind() == '[':
			if raw, has = readBytes(d); !has {
				return "", false
			}
		default:
			if d.SkipValue() != nil {
				return "", false
			}
		}
	}
	if _, err := d.ReadToken(); err != nil || !named {
		return "", false
	}
	if has && utf8.Valid(raw) && text != string(raw) {
		return "", false
	}
	if has {
		return string(raw), true
	}
	return text, true
}

// readBytes reads an array of numbers from 0 to 255.
func readBytes(d *jsontext.Decoder) ([]byte, bool) {
	_, _ = d.ReadToken() // the bracket
	raw := []byte{}
	for d.PeekKind() == '0' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		n, err := strconv.ParseUint(string(value), 10, 8)
		if err != nil {
			return nil, false
		}
		raw = append(raw, byte(n))
	}
	end, err := d.ReadToken()
	return raw, err == nil && end.Kind() == ']'
}
