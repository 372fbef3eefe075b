package delegate

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
)

const (
	// maxOldText bounds the text of a file that is shown beside the one that replaces it.
	maxOldText = 256 << 10
	// oldTextWithin bounds the time in which a client reads it: the call waits meanwhile.
	oldTextWithin = 5 * time.Second
)

// OldText is the text that a client has of a file before it is written; nil of a file that is not there.
// It is not known where the client does not answer, answers with another error, or has a longer text
// than is shown.
func OldText(ctx context.Context, call Call, sessionID, path string) (text *string, known bool) {
	ctx, cancel := context.WithTimeout(ctx, oldTextWithin)
	defer cancel()
	raw, err := call(ctx, wire.MethodReadTextFile, wire.ReadTextFileRequest{SessionID: sessionID, Path: path})
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == wire.CodeNotFound {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	read, err := wire.Read[wire.ReadTextFileResponse](raw)
	if err != nil || len(read.Content) > maxOldText {
		return nil, false
	}
	return &read.Content, true
}
