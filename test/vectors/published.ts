// Vectors that others published: RFC 9180, A.2.1 (base mode of the one suite), and RFC 9421, B.1.4 and B.2.6.

export const rfc9180 = {
  info: '4f6465206f6e2061204772656369616e2055726e',
  ikmE: '909a9b35d3dc4713a5e72a4da274b55d3d3821a37e5d099e74a647db583a904b',
  pkEm: '1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a',
  skEm: 'f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600',
  ikmR: '1ac01f181fdf9f352797655161c58b75c656a6cc2716dcb66372da835542e1df',
  pkRm: '4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a',
  skRm: '8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb',
  sharedSecret: '0bbe78490412b4bbea4812666f7916932b828bba79942424abb65244930d69a7',
  keyScheduleContext:
    '00431df6cd95e11ff49d7013563baf7f11588c75a6611ee2a4404a49306ae4cfc5b69c5718a60cc5876c358d3f7fc31ddb598503f67be58ea1e798c0bb19eb9796',
  secret: '5b9cd775e64b437a2335cf499361b2e0d5e444d5cb41a8a53336d8fe402282c6',
  key: 'ad2744de8e17f4ebba575b3f5f5a8fa1f69c2a07f6e7500bc60ca6e3e3ec1c91',
  baseNonce: '5c4d98150661b848853b547f',
  exporterSecret: 'a3b010d4994890e2c6968a36f64470d3c824c8f5029942feb11e7a74b2921922',
  plaintext: '4265617574792069732074727574682c20747275746820626561757479',
  /** The first has the base nonce; the others are of longer contexts, which the product has none of. */
  encryptions: [
    {
      aad: '436f756e742d30',
      nonce: '5c4d98150661b848853b547f',
      ciphertext:
        '1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28',
    },
    {
      aad: '436f756e742d31',
      nonce: '5c4d98150661b848853b547e',
      ciphertext:
        '6b53c051e4199c518de79594e1c4ab18b96f081549d45ce015be002090bb119e85285337cc95ba5f59992dc98c',
    },
    {
      aad: '436f756e742d32',
      nonce: '5c4d98150661b848853b547d',
      ciphertext:
        '71146bd6795ccc9c49ce25dda112a48f202ad220559502cef1f34271e0cb4b02b4f10ecac6f48c32f878fae86b',
    },
    {
      aad: '436f756e742d34',
      nonce: '5c4d98150661b848853b547b',
      ciphertext:
        '63357a2aa291f5a4e5f27db6baa2af8cf77427c7c1a909e0b37214dd47db122bb153495ff0b02e9e54a50dbe16',
    },
    {
      aad: '436f756e742d323535',
      nonce: '5c4d98150661b848853b5480',
      ciphertext:
        '18ab939d63ddec9f6ac2b60d61d36a7375d2070c9b683861110757062c52b8880a5f6b3936da9cd6c23ef2a95c',
    },
    {
      aad: '436f756e742d323536',
      nonce: '5c4d98150661b848853b557f',
      ciphertext:
        '7a4a13e9ef23978e2c520fd4d2e757514ae160cd0cd05e556ef692370ca53076214c0c40d4c728d6ed9e727a5b',
    },
  ],
};

export const rfc9421 = {
  /** The 32 bytes within the PKCS#8 text of test-key-ed25519. */
  seed: 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU',
  key: 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs',
  components: [
    ['date', 'Tue, 20 Apr 2021 02:07:55 GMT'],
    ['@method', 'POST'],
    ['@path', '/foo'],
    ['@authority', 'example.com'],
    ['content-type', 'application/json'],
    ['content-length', '18'],
  ] as const,
  parameters:
    '("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
  base: [
    '"date": Tue, 20 Apr 2021 02:07:55 GMT',
    '"@method": POST',
    '"@path": /foo',
    '"@authority": example.com',
    '"content-type": application/json',
    '"content-length": 18',
    '"@signature-params": ("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
  ].join('\n'),
  signature: 'wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==',
};
