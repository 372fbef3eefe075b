package elicitation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/elicitation"
)

// TestMCP25NoSecretsByForms: a form that asks for a secret by the name or the title of a
// field of text cannot be put. A choice, a number or a switch is none, and
// neither is a word that has one in it.
func TestMCP25NoSecretsByForms(t *testing.T) {
	read := func(field string) error {
		_, err := elicitation.Read("q", "form", "elicitation/create", []byte(fmt.Sprintf(`{"message":"m","requestedSchema":{"type":"object","properties":{%s}}}`, field)))
		return err
	}
	terms := []string{
		"password", "Password", "userPassword", "user_password", "user-password", "PASSWORD", "dbPASSWORD", "new password", "passwords", "passwd", "pwd", "passphrase", "passcode",
		"secret", "clientSecret", "client_secret", "token", "accessToken", "GITHUB_TOKEN", "oauth2Token", "apiKey", "api_key", "API Key", "api-key", "apikey", "APIKey", "access key", "privateKey", "secretKey",
		"credential", "credentials", "cvv", "CVC", "otp", "security code", "verificationCode", "one-time code",
	}
	for _, term := range terms {
		for place, field := range map[string]string{"name": fmt.Sprintf(`%q:{"type":"string"}`, term), "title": fmt.Sprintf(`"x":{"type":"string","title":"Your %s, please"}`, term)} {
			if err := read(field); err == nil || !strings.Contains(err.Error(), "secret") || place == "name" && strings.Contains(err.Error(), term) && term != "secret" {
				t.Errorf("%s %q: %v", place, term, err)
			}
		}
	}
	for _, field := range []string{
		`"name":{"type":"string"}`, `"passenger":{"type":"string"}`, `"secretary":{"type":"string"}`, `"tokenizer":{"type":"string"}`, `"key":{"type":"string"}`, `"apiKeyboard":{"type":"string"}`,
		`"keyword":{"type":"string"}`, `"code":{"type":"string"}`, `"postcode":{"type":"string"}`, `"compass":{"type":"string","title":"The way"}`,
		`"tokens":{"type":"integer"}`, `"password":{"type":"boolean","title":"Ask for a password each time?"}`, `"token":{"type":"string","enum":["BTC","ETH"]}`,
		`"secret":{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, `"x":{"type":"string","description":"No password, please."}`,
	} {
		if err := read(field); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
}
