package elicitation

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

// errSecret is a form that the protocol forbids: what a person types into a form passes
// through the client, its logs and often its model. A secret is given at an address (url).
var errSecret = errors.New("a form asks for a secret, which only a question of the kind url may")

// secretWords are usual names of fields for secrets: one word, or several in order. The
// list is short on purpose: a form that asks for a secret in other words is not known by
// it, and a question that is none should pass.
var secretWords = []string{ // read only
	"password", "passwords", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "token", "credential", "credentials",
	"apikey", "api key", "access key", "private key", "secret key", "cvv", "cvc", "otp", "security code", "verification code", "time code",
}

// asksForSecret reports whether a field of a form, by its name or its title, is one into which
// a person types a secret.
func asksForSecret(name string, field members) bool {
	_, enum := field["enum"]
	_, one := field["oneOf"]
	if field["type"] != "string" || enum || one {
		return false
	}
	title, _ := field["title"].(string)
	for _, text := range []string{name, title} {
		before := ""
		for _, word := range wordsOf(text) {
			if slices.Contains(secretWords, word) || slices.Contains(secretWords, before+" "+word) {
				return true
			}
			before = word
		}
	}
	return false
}

// wordsOf are the words of a text in lower case: they end where letters do, and where
// camelCase begins another.
func wordsOf(s string) (words []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	runes := []rune(s)
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			end()
			continue
		}
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) ||
			i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])) {
			end()
		}
		word.WriteRune(unicode.ToLower(r))
	}
	end()
	return words
}
