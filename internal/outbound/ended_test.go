package outbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestNothingIsSentForAnEndedContext: a request whose context has ended is not sent, whether a
// connection is kept or not.
func TestNothingIsSentForAnEndedContext(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	client := New(Options{})
	send := func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		SetBody(request, []byte(`{}`))
		response, sent, err := client.Send(request, []string{"127.0.0.1/32"}, false)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		return sent, err
	}
	if _, err := send(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 100 {
		if sent, err := send(ended); sent || !errors.Is(err, context.Canceled) {
			t.Fatalf("sent %v, %v", sent, err)
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("the server got %d requests; expected the first alone", n)
	}
}
