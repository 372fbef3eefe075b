package chat

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// verifiedLogprobs returns the member logprobs of a choice if its tokens, one after the
// other, are the text that is sent, byte for byte, and the refusal, if there is one;
// otherwise nil. A token, or an alternative to it, is sent only if it could be part of a
// text.
func verifiedLogprobs(logprobs, content []byte, refusal *turns.Shown) []byte {
	members, ok := rawjson.Members(logprobs)
	if !ok || !rawjson.HoldsNoCall(logprobs) {
		return nil
	}
	of := map[string]string{"content": string(content), "refusal": ""}
	if refusal != nil {
		of["refusal"] = string(refusal.Text)
	}
	for _, m := range members {
		want, known := of[m.Name]
		if !known || !rawjson.IsNull(m.Value) && !tokensSpell(m.Value, want) {
			return nil
		}
	}
	return logprobs
}

// tokensSpell reports whether an array of tokens is a text.
func tokensSpell(tokens []byte, text string) bool {
	list, ok := rawjson.Elements(tokens)
	if !ok {
		return false
	}
	for _, raw := range list {
		token, ok := readToken(raw)
		if !ok || !strings.HasPrefix(text, token) {
			return false
		}
		text = text[len(token):]
	}
	return text == ""
}

// readToken reads one token: its bytes if they are given, numbers from 0 to 255, else its text. If both are given,
// they must agree, except for the bytes of a part of a character, which has no text.
func readToken(raw []byte) (token string, ok bool) {
	o, _ := rawjson.Members(raw)
	text, ok := rawjson.String(o.Get("token"))
	list, given := rawjson.Elements(o.Get("bytes"))
	if !ok || !given {
		return text, ok
	}
	var b []byte
	for _, value := range list {
		n, err := strconv.ParseUint(string(value), 10, 8)
		if err != nil {
			return "", false
		}
		b = append(b, byte(n))
	}
	return string(b), !utf8.Valid(b) || text == string(b)
}
