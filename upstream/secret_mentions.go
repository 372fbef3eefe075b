package upstream

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// mentions reports whether one of the secrets stands in a body, also behind the escapes of JSON.
func mentions(body []byte, secrets []string) bool {
	if len(secrets) == 0 {
		return false
	}
	decoded := body
	if bytes.IndexByte(body, '\\') >= 0 {
		decoded = unescaped(body)
	}
	for _, secret := range secrets {
		if bytes.Contains(body, []byte(secret)) || bytes.Contains(decoded, []byte(secret)) {
			return true
		}
	}
	return false
}

// unescaped returns the text with the escapes of JSON decoded once; its backslashes are gone.
func unescaped(text []byte) []byte {
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			decoded = append(decoded, text[i])
			continue
		}
		if i++; i < len(text) && text[i] == 'u' && i+4 < len(text) {
			if n, err := strconv.ParseUint(string(text[i+1:i+5]), 16, 16); err == nil {
				decoded = utf8.AppendRune(decoded, rune(n))
				i += 4
				continue
			}
		}
		if i < len(text) && text[i] != '\\' {
			decoded = append(decoded, text[i])
		}
	}
	return decoded
}
