package chat

import (
	"encoding/base64"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/chat"
)

// audio is an answer that the model speaks: the member of that name, of which no more
// is kept than speech is made of.
type audio struct {
	id         string // empty if there is no plain one
	data       string // base64
	expires    []byte // a number, or nil
	transcript string
}

// readAudio reads the speech of a message. It returns none if the upstream's entry drops
// it, or it cannot be read.
func (r *run) readAudio(m *chat.Message) *audio {
	raw := m.Extra.Lookup("audio")
	if raw == nil || r.Route.Rules.Audio == upstream.Drop {
		return nil
	}
	members, ok := rawjson.Members(raw)
	if !ok {
		return nil
	}
	a := &audio{}
	if data := members.Get("data"); data != nil {
		encoded, isText := rawjson.String(data)
		if a.data, ok = joinBase64(encoded); !ok || !isText {
			return nil
		}
	}
	if transcript := members.Get("transcript"); transcript != nil {
		if a.transcript, ok = rawjson.String(transcript); !ok {
			return nil
		}
	}
	if id, _ := rawjson.String(members.Get("id")); ascii.IsPlainID(id) {
		a.id = id
	}
	if expires := members.Get("expires_at"); expires != nil && (expires[0] >= '0' && expires[0] <= '9') {
		a.expires = expires
	}
	return a
}

// hasTranscript reports whether there are words to judge.
func (a *audio) hasTranscript() bool { return a != nil && !isBlank(a.transcript) }

// encode returns the member as the application gets it.
func (a *audio) encode() []byte {
	var o rawjson.Object
	add := func(name string, value []byte) { o = append(o, rawjson.Field(name, value)) }
	if a.id != "" {
		add("id", rawjson.Quote(a.id))
	}
	if a.data != "" {
		add("data", rawjson.Quote(a.data))
	}
	if a.expires != nil {
		add("expires_at", a.expires)
	}
	if a.transcript != "" {
		add("transcript", rawjson.Quote(a.transcript))
	}
	return o.Bytes()
}

// joinBase64 is base64 that was put together of pieces, each of which may end in padding,
// as one piece. ok is false where it is no base64.
func joinBase64(pieces string) (joined string, ok bool) {
	if len(pieces)%4 != 0 {
		return "", false
	}
	plain := make([]byte, 0, base64.StdEncoding.DecodedLen(len(pieces)))
	for rest := pieces; rest != ""; {
		// A piece ends with its padding, or with all.
		n := len(rest)
		for i := 3; i < len(rest); i += 4 {
			if rest[i] == '=' {
				n = i + 1
				break
			}
		}
		var err error
		if plain, err = base64.StdEncoding.AppendDecode(plain, []byte(rest[:n])); err != nil {
			return "", false
		}
		rest = rest[n:]
	}
	return base64.StdEncoding.EncodeToString(plain), true
}
