// SPDX-License-Identifier: Apache-2.0
// sign.mjs twilio TOKEN URL < form as JSON: X-Twilio-Signature, by Twilio's own library.
// sign.mjs vonage SECRET < body: the token of a signed webhook, by jsonwebtoken, which @vonage/jwt uses.
// sign.mjs verify PEM TOKEN: the claims of a token of RS256.
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import jsonwebtoken from 'jsonwebtoken';
import twilio from 'twilio';

const [what, key, text] = process.argv.slice(2);
if (what === 'verify') {
  console.log(JSON.stringify(jsonwebtoken.verify(text, key, { algorithms: ['RS256'] })));
} else if (what === 'twilio') {
  console.log(twilio.getExpectedTwilioSignature(key, text, JSON.parse(readFileSync(0, 'utf8'))));
} else {
  const hash = createHash('sha256').update(readFileSync(0)).digest('hex');
  console.log(jsonwebtoken.sign({ jti: randomUUID(), payload_hash: hash, api_key: 'a1b2c3d' }, key, { algorithm: 'HS256', issuer: 'Vonage' }));
}
