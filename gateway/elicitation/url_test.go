package elicitation_test

import (
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/gateway/elicitation"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// TestQuestionURLs: a person is asked to open a URL where the rule for URLs that people
// open shows it, and no other.
func TestQuestionURLs(t *testing.T) {
	for url, visible := range corpora.URLs(t) {
		params, err := json.Marshal(map[string]string{"mode": "url", "message": "Go", "url": url})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := elicitation.Read("name", "url", methods["url"], params); (err == nil) != visible {
			t.Errorf("%q: %v", url, err)
		}
	}
}
