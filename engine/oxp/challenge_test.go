package oxp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/tool"
)

// TestChallengeURLs: the URL of a challenge passes where the rule for URLs that
// people open shows it, and nowhere else.
func TestChallengeURLs(t *testing.T) {
	for url, visible := range corpora.URLs(t) {
		challenge := map[string]any{"id": "i", "url": url}
		body, err := json.Marshal(map[string]any{"message": "m", "missing_requirements": map[string]any{"authorization": []any{challenge}}})
		if err != nil {
			t.Fatal(err)
		}
		response, err := readServerError(tool.Result{Body: body, JSON: true})
		if err != nil || (len(response.challenges) == 1) != visible || response.dropped == visible {
			t.Errorf("%q: %v, %v", url, response, err)
		}
	}
	for _, n := range []int{maxChallengeBytes, maxChallengeBytes + 1} {
		url := "https://example.com/"
		url += strings.Repeat("x", n-len(url))
		if _, ok := readChallenge(map[string]any{"id": "i", "url": url}); ok != (n == maxChallengeBytes) {
			t.Errorf("a URL of %d bytes: %v", n, ok)
		}
	}
}
