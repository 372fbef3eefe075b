package chat

import (
	"encoding/base64"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
)

// speech is the part of an answer that the model speaks: the member of that name, of which no more
// is kept than speech is made of. It is nil if the upstream's entry drops it, or it cannot be read.
func (r *reader) speech(raw []byte) *turns.Part {
	members, ok := rawjson.Members(raw)
	if !ok || r.dropsAudio {
		return nil
	}
	p := &turns.Part{Row: rowSpeech}
	if id, _ := rawjson.String(members.Get("id")); ascii.IsPlainID(id) {
		p.Beside = append(p.Beside, rawjson.Field("id", rawjson.Quote(id)))
	}
	if data := members.Get(memberData); data != nil {
		encoded, isText := rawjson.String(data)
		joined, ok := joinBase64(encoded)
		if !ok || !isText {
			return nil
		}
		if joined != "" {
			p.Beside = append(p.Beside, rawjson.Field(memberData, rawjson.Quote(joined)))
		}
	}
	if expires := members.Get("expires_at"); expires != nil && ascii.IsDigit(expires[0]) {
		p.Beside = append(p.Beside, rawjson.Field("expires_at", expires))
	}
	if transcript := members.Get("transcript"); transcript != nil {
		text, ok := rawjson.String(transcript)
		if !ok {
			return nil
		}
		p.Text = []byte(text)
	}
	return p
}

// encodeSpeech is the member as the application gets it.
func encodeSpeech(p *turns.Part, transcript []byte) []byte {
	o := p.Beside
	if len(transcript) > 0 {
		o = append(o[:len(o):len(o)], rawjson.Field("transcript", rawjson.Quote(transcript)))
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
