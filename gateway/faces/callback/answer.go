package callback

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

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
			items = append(items, map[string]any{"type": "text",
				"text": fmt.Sprintf("[an image of the type %s, %d bytes, which is not shown to you]", media, size)})
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
