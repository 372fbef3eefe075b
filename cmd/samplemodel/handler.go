package main

import (
	"net/http"
	"strconv"
	"time"
)

// model answers requests for completions.
type model struct {
	repertoire *repertoire
	now        func() time.Time
}

// newHandler serves a model. Paths match byte for byte.
func newHandler(m model) http.Handler {
	paths := map[string]struct {
		method string
		serve  http.HandlerFunc
	}{
		"/v1/chat/completions": {http.MethodPost, m.complete},
		"/v1/models":           {http.MethodGet, m.models},
		"/healthz": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, map[string]bool{"ok": true})
		}},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := paths[r.URL.Path]
		switch {
		case !ok:
			refuse(w, failed(http.StatusNotFound, "", "there is no such path"))
		case r.Method != p.method:
			w.Header().Set("Allow", p.method)
			refuse(w, failed(http.StatusMethodNotAllowed, "", "found another method; expected %s", p.method))
		default:
			p.serve(w, r)
		}
	})
}

// models is the list of scenarios, as one of models.
func (m model) models(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		Owner   string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []entry `json:"data"`
	}{Object: "list"}
	for _, name := range m.repertoire.names() {
		list.Data = append(list.Data, entry{name, "model", 0, "samplemodel"})
	}
	answer(w, http.StatusOK, list)
}

func (m model) complete(w http.ResponseWriter, r *http.Request) {
	q, fault := readRequest(w, r)
	if fault != nil {
		refuse(w, fault)
		return
	}
	c, ok := follow(q.Messages)
	if !ok {
		refuse(w, failed(http.StatusBadRequest, "messages", "found a message of another form; expected role and content"))
		return
	}
	s := m.repertoire.find(q.Model)
	a := s.play(c, len(q.Tools) > 0)
	d := delivery{fault: a.fault, write: s.Write, pause: s.pause()}
	var all [][]byte
	var err error
	if q.Stream {
		all, err = a.events(q, newHead(q, c, "chat.completion.chunk", m.now().Unix()), s.Chunk)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
	} else {
		var body []byte
		body, err = a.whole(q, newHead(q, c, "chat.completion", m.now().Unix()))
		all = [][]byte{body}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	if err != nil {
		refuse(w, failed(http.StatusInternalServerError, "", "internal"))
		return
	}
	d.send(r.Context(), w, all)
}
