package acp

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// content is that of a prompt.
type content struct {
	blocks []wire.ContentBlock
	chat   []byte // as a message to the model has it
	title  string
}

// maxTitle bounds the title of a session, in characters.
const maxTitle = 80

// readContent translates the blocks of a prompt for the model: text, links and embedded texts become
// texts, and images go along where the model takes them. The error is a *refusal.Error.
func readContent(blocks []wire.ContentBlock, images bool) (content, error) {
	read := content{blocks: blocks}
	if len(blocks) == 0 {
		return read, refusal.New(refusal.BadRequest, "A prompt has at least one block of content.")
	}
	var texts []string
	parts := []byte{'['}
	pictures := 0
	for i := range blocks {
		b := &blocks[i]
		var part rawjson.Object
		if b.Type == wire.Image && images {
			if err := checkImage(b, i); err != nil {
				return read, err
			}
			pictures++
			url := rawjson.Object{rawjson.Field("url", rawjson.Quote("data:"+b.MimeType+";base64,"+b.Data))}.Bytes()
			part = rawjson.Object{rawjson.Field("type", rawjson.Quote("image_url")), rawjson.Field("image_url", url)}
		} else {
			text, err := textOf(b, i)
			if err != nil {
				return read, err
			}
			texts = append(texts, text)
			part = rawjson.Object{rawjson.Field("type", rawjson.Quote("text")), rawjson.Field("text", rawjson.Quote(text))}
		}
		if i > 0 {
			parts = append(parts, ',')
		}
		parts = append(parts, part.Bytes()...)
	}
	if read.chat = append(parts, ']'); pictures == 0 {
		read.chat = rawjson.Quote(strings.Join(texts, "\n\n")) // every provider takes a string
	}
	if len(texts) > 0 {
		read.title = titleOf(texts[0])
	}
	return read, nil
}

// textOf is a block as the model reads it.
func textOf(b *wire.ContentBlock, i int) (string, error) {
	switch {
	case b.Type == wire.Text:
		return b.Text, nil
	case b.Type == wire.ResourceLink:
		return fmt.Sprintf("The user refers to %s: %s", quoted(b.Name), b.URI), nil
	case b.Type == wire.Resource && b.Resource.Text != nil:
		return fmt.Sprintf("The user adds %s:\n%s", b.Resource.URI, *b.Resource.Text), nil
	case b.Type == wire.Resource:
		return "", badBlock(i, "a resource that is a text; the model takes no others")
	}
	return "", badBlock(i, "text, a link or an embedded text; the model takes no block of the type "+string(b.Type))
}

// checkImage checks that an image is one.
func checkImage(b *wire.ContentBlock, i int) error {
	kind, ok := strings.CutPrefix(b.MimeType, "image/")
	if !ok || strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789.+-") != "" || kind == "" {
		return badBlock(i, "a mimeType of an image")
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(b.Data); err != nil || b.Data == "" {
		return badBlock(i, "an image in base64")
	}
	return nil
}

func badBlock(i int, expected string) error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf("The params are not valid. /prompt/%d: expected %s.", i, expected))
}

// titleOf is the beginning of the first line of a text that shows something.
func titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line)
	if runes := []rune(line); len(runes) > maxTitle {
		line = string(runes[:maxTitle-1]) + "…"
	}
	return line
}

// quoted is a name as messages have it.
func quoted(s string) string { return parser.Quote(s) }
