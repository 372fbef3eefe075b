package wire

import (
	"encoding/json"
	"fmt"
	"math"
)

// Meta is a member _meta: an object as it was written, or nil.
type Meta = json.RawMessage

// ContentType is the type of a block of content.
type ContentType string

// The types of content.
const (
	Text         ContentType = "text"
	Image        ContentType = "image"
	Audio        ContentType = "audio"
	ResourceLink ContentType = "resource_link"
	Resource     ContentType = "resource"
)

// ContentBlock is a block of content. Its type says which members it has: Text; Data, MimeType
// and, of an image, URI; URI, Name, Title, Description, MimeType and Size of a link; Resource.
type ContentBlock struct {
	Type        ContentType
	Text        string
	Data        string // base64
	MimeType    string
	URI         string
	Name        string
	Title       string
	Description string
	Size        *int64
	Resource    *ResourceContents
	Annotations *Annotations
	Meta        Meta
}

// ResourceContents is the content of an embedded resource: either Text or Blob is set.
type ResourceContents struct {
	URI      string  `json:"uri"`
	MimeType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     *string `json:"blob,omitempty"` // base64
	Meta     Meta    `json:"_meta,omitempty"`
}

// Role is for whom content is meant.
type Role string

// The roles.
const (
	Assistant Role = "assistant"
	User      Role = "user"
)

// Annotations say how a client may show content.
type Annotations struct {
	Audience     []Role      `json:"audience,omitzero"`
	LastModified string      `json:"lastModified,omitempty"`
	Priority     json.Number `json:"priority,omitempty"`
	Meta         Meta        `json:"_meta,omitempty"`
}

// TextBlock returns a text as content.
func TextBlock(text string) ContentBlock { return ContentBlock{Type: Text, Text: text} }

func readContentBlock(o *object) ContentBlock {
	c := ContentBlock{
		Type:        enum(o.at("type"), o.required("type"), Text, Image, Audio, ResourceLink, Resource),
		Annotations: oObject(o, "annotations", readAnnotations),
		Meta:        o.meta(),
	}
	switch c.Type {
	case Text:
		c.Text = o.rText("text")
	case Image:
		c.Data, c.MimeType, c.URI = o.rText("data"), o.rText("mimeType"), o.oText("uri")
	case Audio:
		c.Data, c.MimeType = o.rText("data"), o.rText("mimeType")
	case ResourceLink:
		c.URI, c.Name = o.rText("uri"), o.rText("name")
		c.Title, c.Description, c.MimeType = o.oText("title"), o.oText("description"), o.oText("mimeType")
		if n := o.oWhole("size", 0, math.MaxInt64); n != nil {
			size := int64(*n)
			c.Size = &size
		}
	case Resource:
		resource := rObject(o, "resource", readResourceContents)
		c.Resource = &resource
	}
	return c
}

func readResourceContents(o *object) ResourceContents {
	r := ResourceContents{
		URI: o.rText("uri"), MimeType: o.oText("mimeType"),
		Text: o.oString("text"), Blob: o.oString("blob"), Meta: o.meta(),
	}
	if (r.Text == nil) == (r.Blob == nil) {
		o.fail("either a text or a blob", "both or none")
	}
	return r
}

func readAnnotations(o *object) Annotations {
	return Annotations{
		Audience: list(o.at("audience"), o.nullable("audience"), func(p *place, raw json.RawMessage) Role {
			return enum(p, raw, Assistant, User)
		}),
		LastModified: o.oText("lastModified"),
		Priority:     o.at("priority").number(o.nullable("priority")),
		Meta:         o.meta(),
	}
}

// MarshalJSON writes the members that the type has.
func (c ContentBlock) MarshalJSON() ([]byte, error) {
	type common struct {
		Type        ContentType  `json:"type"`
		Annotations *Annotations `json:"annotations,omitempty"`
		Meta        Meta         `json:"_meta,omitempty"`
	}
	head := common{c.Type, c.Annotations, c.Meta}
	switch c.Type {
	case Text:
		return json.Marshal(struct {
			common
			Text string `json:"text"`
		}{head, c.Text})
	case Image, Audio:
		return json.Marshal(struct {
			common
			Data     string `json:"data"`
			MimeType string `json:"mimeType"`
			URI      string `json:"uri,omitempty"`
		}{head, c.Data, c.MimeType, c.URI})
	case ResourceLink:
		return json.Marshal(struct {
			common
			URI         string `json:"uri"`
			Name        string `json:"name"`
			Title       string `json:"title,omitempty"`
			Description string `json:"description,omitempty"`
			MimeType    string `json:"mimeType,omitempty"`
			Size        *int64 `json:"size,omitempty"`
		}{head, c.URI, c.Name, c.Title, c.Description, c.MimeType, c.Size})
	case Resource:
		return json.Marshal(struct {
			common
			Resource *ResourceContents `json:"resource"`
		}{head, c.Resource})
	}
	return nil, fmt.Errorf("%q is no type of content", c.Type)
}
