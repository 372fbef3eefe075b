package callback

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/weburl"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// maxDepth bounds how deep a message may nest.
const maxDepth = 64

// message is a message that was read: its call, and its effect.
type message struct {
	id, group string
	digest    string
	post      func(context.Context, *calls.Executor, calls.CallbackMessage) error
}

func malformed(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf("The message is not valid: "+format+".", args...))
}

// read reads a message by the rules of its type. It masks the token of the callback address
// in every text that is passed on.
func read(body []byte, token string) (message, *refusal.Error) {
	value, err := parser.ReadValue(body, maxDepth)
	if err != nil {
		return message{}, malformed("%v", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return message{}, malformed("found no object")
	}
	digest := digest(object)
	mask(object, token)
	r := reader{object: object, token: token}
	m := message{digest: digest, group: r.text("group_id", true)}
	switch kind := r.text("type", true); kind {
	case "tool_result":
		m.id = r.text("id", true)
		a := r.answer()
		m.post = func(ctx context.Context, k *calls.Executor, p calls.CallbackMessage) error {
			return k.Complete(ctx, p, a)
		}
	case "oauth":
		m.id = r.text("id", true)
		at := r.authorization()
		m.post = func(ctx context.Context, k *calls.Executor, p calls.CallbackMessage) error {
			return k.SaveAuthURL(ctx, p, at)
		}
	case "subscription_event":
		m.id = r.text("tool_call_id", true)
		e := r.event()
		m.post = func(ctx context.Context, k *calls.Executor, p calls.CallbackMessage) error {
			return k.PublishEvent(ctx, p, e)
		}
	case "view_update":
		view := r.view()
		m.post = func(ctx context.Context, k *calls.Executor, p calls.CallbackMessage) error {
			p.ID = p.CallID // the message names the thread alone, and its address the call
			return k.PutView(ctx, p, view)
		}
	case "user_choice":
		m.id = r.text("id", true)
		asked := r.choice(digest)
		m.post = func(ctx context.Context, k *calls.Executor, p calls.CallbackMessage) error {
			return k.SaveChoice(ctx, p, asked)
		}
	default:
		r.fail("found the type %s; expected tool_result, oauth, subscription_event, user_choice or view_update", parser.Quote(kind))
	}
	r.text("call_id", false)
	return m, r.refused
}

// digest hashes the content of a message independently of its encoding: a tool may encode
// the same message differently.
func digest(object map[string]any) string {
	canonical, err := json.Marshal(object)
	if err != nil {
		return "" // what was read always encodes
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// masked replaces the token of the callback address in a tool's text: a reader of the token
// could answer in the tool's place.
const masked = "[callback address]"

// mask replaces a token in every text of a value, and in the names of its members.
func mask(value any, token string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, token, masked)
	case []any:
		for i := range v {
			v[i] = mask(v[i], token)
		}
	case map[string]any:
		for name, member := range v {
			if at := strings.ReplaceAll(name, token, masked); at != name {
				delete(v, name)
				name = at
			}
			v[name] = mask(member, token)
		}
	}
	return value
}

// reader reads the members of a message. It keeps the first fault.
type reader struct {
	object  map[string]any
	token   string
	refused *refusal.Error
}

func (r *reader) fail(format string, args ...any) {
	if r.refused == nil {
		r.refused = malformed(format, args...)
	}
}

// text reads a member that is a string, and not empty where it is required; else it
// may be absent, or null.
func (r *reader) text(member string, required bool) string {
	v, stated := r.object[member]
	text, isText := v.(string)
	switch {
	case required && text == "":
		r.fail("%s is missing, or no string with text", member)
	case stated && v != nil && !isText:
		r.fail("%s is no string", member)
	}
	return text
}

func (r *reader) flag(member string) bool {
	v, stated := r.object[member]
	flag, isFlag := v.(bool)
	if stated && v != nil && !isFlag {
		r.fail("%s is no boolean", member)
	}
	return flag
}

// list reads a member that is a list of objects; absent or null, it is nil.
func (r *reader) list(member string) []map[string]any {
	v := r.object[member]
	if v == nil {
		return nil
	}
	items, isList := v.([]any)
	list := make([]map[string]any, 0, len(items))
	for _, item := range items {
		object, isObject := item.(map[string]any)
		isList = isList && isObject
		list = append(list, object)
	}
	if !isList {
		r.fail("%s is no list of objects", member)
		return nil
	}
	return list
}

// failed is the prefix of a text that reports a failure.
const failed = "Error: "

// answer reads a tool_result. Content for people never changes the text for the model.
func (r *reader) answer() calls.CallbackResult {
	text, hasText := r.object["text"].(string)
	if v := r.object["text"]; v != nil && !hasText {
		r.fail("text is no string")
	}
	content := r.list("content")
	if !hasText && content == nil {
		r.fail("found neither text nor content; expected one of them")
	}
	a := calls.CallbackResult{Subscribed: r.flag("subscription")}
	display := r.display()
	switch {
	case content != nil: // which wins over text
		items, images := r.content(content)
		a.Output = output(map[string]any{"content": items})
		if display == nil {
			display = images
		}
		if text, alone := onlyText(items); alone && strings.HasPrefix(text, failed) {
			a.Failure = text
		}
	case strings.HasPrefix(text, failed):
		a.Failure = text
	default:
		a.Output = r.textOutput(text)
	}
	if display != nil {
		a.Display, _ = json.Marshal(display) // what was read always encodes
	}
	return a
}

// textOutput is a text as an output: the object that it is, or an object with it.
func (r *reader) textOutput(text string) tool.Result {
	object := objectOf(text)
	if object != nil && strings.Contains(text, `\`) {
		// Within an object the token may be spelled with escapes.
		plain := output(object).Body
		if display := strings.ReplaceAll(string(plain), r.token, masked); display != string(plain) {
			text, object = display, objectOf(display)
		}
	}
	if object == nil {
		return output(map[string]any{"text": text})
	}
	return tool.Result{Body: []byte(text), JSON: true}
}

// objectOf is the strict JSON object that a text is, or nil.
func objectOf(text string) map[string]any {
	value, err := parser.ReadValue([]byte(text), maxDepth)
	if err != nil {
		return nil
	}
	object, _ := value.(map[string]any)
	return object
}

func output(value map[string]any) tool.Result {
	body, err := json.Marshal(value)
	if err != nil {
		body = []byte("{}") // what was read always encodes
	}
	return tool.Result{Body: body, JSON: true}
}

// content reads the items of a result. A model reads only text here, so an image becomes a
// placeholder for it, and is kept for people.
func (r *reader) content(list []map[string]any) (items []any, images []any) {
	items = []any{}
	for _, object := range list {
		item := reader{object: object}
		switch item.text("type", true) {
		case "text":
			text, isText := object["text"].(string)
			if !isText {
				item.fail("an item of content has no text")
			}
			items = append(items, map[string]any{"type": "text", "text": text})
		case "image":
			data, media, size := item.image(object)
			items = append(items, map[string]any{"type": "text", "text": fmt.Sprintf("[an image of the type %s, %d bytes, which is not shown to you]", media, size)})
			images = append(images, map[string]any{"type": "image", "content": map[string]any{"data": data, "mediaType": media}})
		default:
			item.fail("an item of content is neither text nor image")
		}
		if item.refused != nil && r.refused == nil {
			r.refused = item.refused
		}
	}
	return items, images
}

func (r *reader) image(object map[string]any) (data, media string, size int) {
	data, isText := object["data"].(string)
	decoded, err := base64.StdEncoding.DecodeString(data)
	if !isText || err != nil {
		r.fail("the data of an image is no base64")
	}
	media = r.text("mediaType", true)
	if !strings.HasPrefix(media, "image/") || !ascii.IsVisible(media) || strings.ContainsAny(media, "[]") || len(media) > 64 {
		r.fail("the mediaType of an image is none of images")
	}
	return data, media, len(decoded)
}

// onlyText is the text of a content that is one text.
func onlyText(items []any) (string, bool) {
	if len(items) != 1 {
		return "", false
	}
	item, _ := items[0].(map[string]any)
	text, isText := item["text"].(string)
	return text, isText
}

// display reads the content for people: segments of known types whose content fits the
// type. An invalid one never refuses an answer: without a valid segment, display is empty.
func (r *reader) display() []any {
	list, _ := r.object["display_as"].([]any)
	var segments []any
	for _, item := range list {
		object, _ := item.(map[string]any)
		if content := segment(object); content != nil {
			segments = append(segments, map[string]any{"type": object["type"], "content": content})
		}
	}
	return segments
}

// segment is the content of a segment, or nil where it cannot be shown.
func segment(object map[string]any) any {
	inner, _ := object["content"].(map[string]any)
	switch object["type"] {
	case "text":
		if text, isText := object["content"].(string); isText {
			return text
		}
	case "diff":
		path, hasPath := inner["path"].(string)
		patch, hasPatch := inner["patch"].(string)
		if hasPath && hasPatch {
			return map[string]any{"path": path, "patch": patch}
		}
	case "image":
		r := reader{object: inner}
		if data, media, _ := r.image(inner); r.refused == nil {
			return map[string]any{"data": data, "mediaType": media}
		}
	}
	return nil
}

// event reads a subscription_event.
func (r *reader) event() events.Event {
	text, isText := r.object["text"].(string)
	if !isText || len(text) > events.MaxEventBytes {
		r.fail("text is missing, no string, or longer than %d bytes", events.MaxEventBytes)
	}
	return events.Event{Text: text, Associative: r.flag("associative"), Final: r.flag("final")}
}

// authorization reads where a person must go.
func (r *reader) authorization() string {
	text := r.text("auth_url", true)
	if !weburl.IsPublic(text) {
		r.fail("auth_url is no URL that people are sent to: https at a public name of the DNS, in plain ASCII, without user info")
	}
	return text
}

// view reads a view_update.
func (r *reader) view() events.View {
	kind := r.text("view_type", true)
	if len(kind) > events.MaxViewTypeBytes || !ascii.IsVisible(kind) {
		r.fail("view_type is not of at most %d visible characters of ASCII", events.MaxViewTypeBytes)
	}
	content, isObject := r.object["content"].(map[string]any)
	if !isObject {
		r.fail("content is missing, or no object")
	}
	view, ok := events.NewView(kind, content)
	if !ok {
		r.fail("content is longer than %d bytes, or has names that are equal once hidden characters are escaped", events.MaxViewBytes)
	}
	return view
}
