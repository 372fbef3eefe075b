package main

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
)

// toolServer is a server of tools on loopback that do not do what they should, each at its path.
type toolServer struct {
	url    string
	server *http.Server
	ended  chan struct{}
}

func newToolServer() (*toolServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then nothing notices that the client has left
		<-r.Context().Done()
	})
	mux.HandleFunc("/hangs-up", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/away", answering(http.StatusServiceUnavailable, "{}"))
	mux.HandleFunc("/refuses", answering(http.StatusBadRequest, "{}"))
	mux.HandleFunc("/fails", answering(http.StatusInternalServerError, "{}"))
	mux.HandleFunc("/mumbles", answering(http.StatusOK, `{"results":`))
	mux.HandleFunc("/rambles", answering(http.StatusOK, `{"results":["`+strings.Repeat("and so on ", 100)+`"]}`))
	t := &toolServer{"http://" + listener.Addr().String(), &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)},
		make(chan struct{})}
	go func() {
		defer close(t.ended)
		if err := t.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			_ = listener.Close() // calls find no server, and their cases fail
		}
	}()
	return t, nil
}

// answering answers with a status and a body of JSON.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that has left gets none
	}
}

// Close ends the server with its connections; there may be none.
func (t *toolServer) Close() {
	if t == nil {
		return
	}
	_ = t.server.Close() // of a listener that is closed before
	<-t.ended
}
