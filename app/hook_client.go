package app

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/rawjson"
)

const (
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 64 << 10
	// maxTexts bounds the places, or labels, of one answer.
	maxTexts = 256
	maxDepth = 4
)

// hookClient asks callouts. It is safe for concurrent use.
type hookClient struct {
	outbound *outbound.Client
	now      func() time.Time
}

// newHookClient returns a client that asks by another one, which has the rules of outgoing requests.
func newHookClient(by *outbound.Client) *hookClient { return &hookClient{by, by.Now} }

// Ask asks the callout of a hook about a JSON value. Its error holds nothing of the value, and no
// secret. The request may be repeated on another connection where one broke: a callout must not act.
func (c *hookClient) Ask(ctx context.Context, h *hook.Hook, q hook.Question, value []byte) (hook.Answer, error) {
	body, err := outbound.EncodeWith("value", value, struct {
		Hook string `json:"hook"`
		hook.Question
	}{h.Name, q})
	if err != nil {
		return hook.Answer{}, errors.New("the question cannot be encoded")
	}
	header, err := h.Callout.Header("hook_"+rand.Text(), c.now(), body)
	if err != nil {
		return hook.Answer{}, err
	}
	header["Accept"], header["Accept-Encoding"] = []string{"application/json"}, []string{"identity"}
	header["Content-Type"], header["User-Agent"] = []string{"application/json"}, []string{"callgate"}
	answer, _, err := c.outbound.FetchJSON(outbound.RequestWith(ctx, http.MethodPost, h.Callout.URL, header, body), nil,
		h.Callout.Addresses, maxAnswer)
	if err != nil {
		if ctx.Err() != nil {
			return hook.Answer{}, errors.New("it has not answered in time")
		}
		return hook.Answer{}, err
	}
	return readHookAnswer(answer)
}

// errHookAnswer is an answer that is none.
var errHookAnswer = errors.New("it answers something else than a verdict")

// readHookAnswer reads an answer strictly.
func readHookAnswer(body []byte) (hook.Answer, error) {
	members, err := rawjson.ReadMap(body, maxDepth)
	if err != nil {
		return hook.Answer{}, errHookAnswer
	}
	verdict, _ := rawjson.String(members["verdict"])
	message, isText := rawjson.String(members["message"])
	labels, labelled := readHookTexts(members["labels"])
	if labelled && verdict != "deny" {
		delete(members, "labels")
	}
	switch {
	case verdict == "allow" && len(members) == 1:
		return hook.Answer{Labels: labels}, nil
	case verdict == "deny" && (len(members) == 1 || len(members) == 2 && isText):
		return hook.Answer{Deny: true, Message: message}, nil
	case verdict == "redact" && len(members) == 2:
		pointers, ok := readHookTexts(members["pointers"])
		if ok {
			return hook.Answer{Redact: pointers, Labels: labels}, nil
		}
	}
	return hook.Answer{}, errHookAnswer
}

// readHookTexts reads a list of at least one text, and at most maxTexts.
func readHookTexts(raw []byte) (texts []string, ok bool) {
	list, ok := rawjson.Elements(raw)
	if !ok {
		return nil, false
	}
	for i, element := range list {
		text, isText := rawjson.String(element)
		if !isText || i == maxTexts {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, texts != nil
}
