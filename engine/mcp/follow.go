package mcp

import (
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	maxFollowed  = 1 << 20 // bytes of one stream, before it is opened anew
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// follow keeps a stream open on which the server tells that its tools have changed:
// the answer to a request, or where there is none, to a GET. It ends with the
// session, and where the server has no such stream.
func (r *remote) follow(request *jsonrpc.Request) {
	pause := firstPause
	for {
		began := time.Now()
		if !r.hear(request) {
			return
		}
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
		// What was said meanwhile was not heard.
		r.client.ring(r.place.server)
	}
}

// hear reads one stream to its end, and tells whether to open another.
func (r *remote) hear(request *jsonrpc.Request) (again bool) {
	defer func() {
		if recover() != nil {
			again = false
		}
	}()
	response, err := r.open(request)
	if err != nil {
		return r.ctx.Err() == nil
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || mediaType(response.Header) != "text/event-stream" {
		return response.StatusCode >= http.StatusInternalServerError
	}
	stream := newEvents(&bounded{response.Body, maxFollowed})
	for {
		data, err := stream.next()
		if err != nil {
			return r.ctx.Err() == nil
		}
		m, err := readMessage(data)
		if err != nil || !m.asks {
			return err == nil
		}
		r.notice(m)
	}
}

func (r *remote) open(request *jsonrpc.Request) (*http.Response, error) {
	if request != nil {
		return r.send(r.ctx, request, &exchange{})
	}
	get, err := r.request(r.ctx, http.MethodGet)
	if err != nil {
		return nil, err
	}
	get.Header.Set("Accept", "text/event-stream")
	response, _, err := r.client.options.Outbound.Send(get, r.place.addresses, false)
	return response, err
}
