// SPDX-License-Identifier: Apache-2.0
// node provider.mjs '{"port", "clients", "people"}': an OpenID provider that is not ours (npm's oidc-provider), in memory. `people` are claims by login
// name; any password is good.
import { generateKeyPairSync } from 'node:crypto'
import { Provider } from 'oidc-provider'

const { port, clients, people } = JSON.parse(process.argv[2])
const jwk = (kind, options, more) => ({ ...generateKeyPairSync(kind, options).privateKey.export({ format: 'jwk' }), use: 'sig', ...more })

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients,
  jwks: { keys: [jwk('rsa', { modulusLength: 2048 }, { kid: 'r1', alg: 'RS256' }), jwk('ec', { namedCurve: 'P-256' }, { kid: 'e1', alg: 'ES256' })] },
  cookies: { keys: ['of the tests'] },
  claims: { openid: ['sub'], profile: ['preferred_username', 'name', 'groups'], email: ['email'] },
  conformIdTokenClaims: false, // groups are in the ID token
  ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
  findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
})
provider.on('server_error', (_, error) => console.error(error))
provider.listen(port, '127.0.0.1')
