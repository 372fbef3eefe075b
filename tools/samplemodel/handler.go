package main

import (
	"net/http"
	"strconv"
)

// newHandler serves a model. Paths match byte for byte.
func newHandler(m model) http.Handler {
	type reader func([]byte) (*question, *failure)
	asking := func(read reader, refuse func(http.ResponseWriter, *failure)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, fault := readBody(w, r)
			if fault == nil {
				var q *question
				if q, fault = read(body); fault == nil {
					m.play(w, r, q)
					return
				}
			}
			refuse(w, fault)
		}
	}
	paths := map[string]struct {
		method string
		serve  http.HandlerFunc
		refuse func(http.ResponseWriter, *failure)
	}{
		"/v1/chat/completions":       {http.MethodPost, asking(m.readChat, refuse), refuse},
		"/v1/messages":               {http.MethodPost, versioned(asking(m.readMessages, refuseMessages)), refuseMessages},
		"/v1/messages/count_tokens":  {http.MethodPost, versioned(countMessages), refuseMessages},
		"/v1/responses":              {http.MethodPost, asking(m.readResponses, refuse), refuse},
		"/v1/responses/input_tokens": {http.MethodPost, countInput, refuse},
		"/v1/models":                 {http.MethodGet, m.models, refuse},
		"/healthz": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, map[string]bool{"ok": true})
		}, refuse},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := paths[r.URL.Path]
		switch {
		case !ok:
			refuse(w, failed(http.StatusNotFound, "", "there is no such path"))
		case r.Method != p.method:
			w.Header().Set("Allow", p.method)
			p.refuse(w, failed(http.StatusMethodNotAllowed, "", "found another method; expected %s", p.method))
		default:
			p.serve(w, r)
		}
	})
}

// models is the list of scenarios, as one of models, in the shape of the API that a
// request speaks.
func (m model) models(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(versionHeader) != "" {
		answer(w, http.StatusOK, newModelPage(m.repertoire.names()))
		return
	}
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

// play answers a question by its scenario.
func (m model) play(w http.ResponseWriter, r *http.Request, q *question) {
	s := m.repertoire.find(q.model)
	a := q.reply(s)
	switch {
	case a.status != 0 && a.body != nil:
		answer(w, a.status, a.body)
		return
	case a.status != 0:
		answer(w, a.status, q.form.failure(a.status))
		return
	case a.fault == faultError && !q.stream:
		answer(w, http.StatusInternalServerError, q.form.failure(http.StatusInternalServerError))
		return
	}
	all, err := encoded(q, a, s.Chunk)
	if err != nil {
		answer(w, http.StatusInternalServerError, q.form.failure(http.StatusInternalServerError))
		return
	}
	if q.stream {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
	} else {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(all[0])))
	}
	delivery{fault: a.fault, write: s.Write, pause: s.pause()}.send(r.Context(), w, all)
}
