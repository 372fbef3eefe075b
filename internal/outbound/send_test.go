package outbound

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzEncodeRequest: a request that is encoded here is encoded as net/http writes it.
func FuzzEncodeRequest(f *testing.F) {
	for _, seed := range [][5]string{
		{"POST", "http://tool.example:8080/a%2Fb?k=v", "X-A", "b", `{"a":1}`},
		{"GET", "http://[::1]/", "Accept", "text/plain", ""},
		{"GET", "http://[fe80::1%25en0]/", "X-A", "b", ""},
		{"PUT", "http://h", "x-lower", " \tb \t", ""},
		{"DELETE", "https://h/?q", "X-A", "a\r\nX-B: c", ""},
		{"HEAD", "http://h:/", "Host", "other", ""},
		{"PATCH", "http://h/", "Content-Length", "7", "x"},
		{"CONNECT", "http://h/", "User-Agent", "me", "x"},
		{"POST", "http://grüße.example/", "X A", "b", "x"},
		{"POST", "http://h//p?a b", "X-A", "\x7f", "x"},
		{"DELETE", "http://h/", "Transfer-Encoding", "chunked", "x"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	f.Fuzz(func(t *testing.T, method, target, name, value, body string) {
		request, err := http.NewRequestWithContext(t.Context(), method, target, nil)
		if err != nil {
			t.Skip("no request")
		}
		request.Header.Set("User-Agent", "callgate")
		request.Header["Accept"] = []string{"application/json"}
		request.Header[name] = []string{value}
		encoded, ok := encodeRequest(nil, request, []byte(body))
		if !ok {
			t.Skip("left to net/http")
		}
		request.Body, request.ContentLength = http.NoBody, 0
		if body != "" {
			request.Body, request.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		}
		var want bytes.Buffer
		if err := request.Write(&want); err != nil {
			t.Fatalf("net/http refuses what was encoded: %v\n%q", err, encoded)
		}
		if !bytes.Equal(encoded, want.Bytes()) {
			t.Fatalf("encoded\n%q\nnet/http writes\n%q", encoded, want.Bytes())
		}
	})
}
