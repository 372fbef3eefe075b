package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// testApproveAsks: a yes is to what is shown, and anything but y or yes is none.
func TestApproveAsks(t *testing.T) {
	asked := 0
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"id":"call_A","state":"waiting","arguments":{"z":1.0,"a":"\u001b[2J"},"digest":"aaaabbbb"}`)
	}))
	defer gateway.Close()
	for answer, approved := range map[string]bool{"y\n": true, "Yes\n": true, "\n": false, "n\n": false, "": false, "y": false, "yeah\n": false} {
		asked = 0
		var out, errs bytes.Buffer
		api := &adminAPI{env: env{Stdin: strings.NewReader(answer), Stdout: &out, Stderr: &errs}, url: gateway.URL}
		err := api.cast(t.Context(), "call_A", vote{Vote: "yes"}, false)
		if (err == nil) != approved || (asked == 2) != approved || !strings.Contains(errs.String(), `"z": 1.0`) || !strings.Contains(errs.String(), "Approve this call?") {
			t.Errorf("%q: %v, asked %d times: %s", answer, err, asked, errs.String())
		}
	}
}
