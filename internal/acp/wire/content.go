package wire

import "encoding/json"

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
	Type        ContentType       `json:"type" wire:"required kind" enum:"text image audio resource_link resource"`
	Annotations *Annotations      `json:"annotations"`
	Meta        Meta              `json:"_meta"`
	Text        string            `json:"text" of:"text!"`
	Data        string            `json:"data" of:"image! audio!"` // base64
	URI         string            `json:"uri" of:"image resource_link!"`
	Name        string            `json:"name" of:"resource_link!"`
	Title       string            `json:"title" of:"resource_link"`
	Description string            `json:"description" of:"resource_link"`
	MimeType    string            `json:"mimeType" of:"image! audio! resource_link"`
	Size        *int64            `json:"size" of:"resource_link"`
	Resource    *ResourceContents `json:"resource" of:"resource!"`
}

// ResourceContents is the content of an embedded resource: either Text or Blob is set.
type ResourceContents struct {
	URI      string  `json:"uri" wire:"required"`
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
	Audience     []Role      `json:"audience,omitzero" wire:"null" enum:"assistant user"`
	LastModified string      `json:"lastModified,omitempty"`
	Priority     json.Number `json:"priority,omitempty"`
	Meta         Meta        `json:"_meta,omitempty"`
}

// TextBlock returns a text as content.
func TextBlock(text string) ContentBlock { return ContentBlock{Type: Text, Text: text} }

func (r *ResourceContents) read(o *object) {
	o.fields(r)
	if (r.Text == nil) == (r.Blob == nil) {
		o.fail("either a text or a blob", "both or none")
	}
}

// MarshalJSON writes the members that the type has.
func (c ContentBlock) MarshalJSON() ([]byte, error) { return written(string(c.Type), c) }
