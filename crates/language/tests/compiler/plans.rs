//! What a valid source becomes.

use std::collections::BTreeMap;

use expect_test::expect;
use surefoot_language::{Bindings, Manifest, bind, compile, compile_and_bind};

use crate::support::*;

#[test]
fn the_example_of_the_language_compiles_to_a_plan() {
    let plan = plan(EXAMPLE);
    expect![[r#"
        {
          "schema": 1,
          "language": 1,
          "module": {
            "id": "inventory",
            "version": 1
          },
          "hashes": {
            "source": "1ba9d128f6dd47d3cd0d37074c73e3f0eb7702e7fae814dcf257effae675e946",
            "manifest": "8c071fd46a17465b00d078479e2896c4a030e89690b923a0c2299b419107d655",
            "catalog": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
          },
          "footprint": {
            "module": "inventory",
            "uses": {
              "action/chargeCard": "c6c32241d10ed5d33c0d2b8eb9709d26a16d8ab1332243c6dfdbf3af2ef7bbb3",
              "action/loadItem": "8a01274c74b96942edff1a00480b667631222cf04cba7d163552a0c820c2d38c",
              "action/priceOrder": "e385637e160e70f0090d102d86e4738301ee479b49098a2514c4096cd86d17ff",
              "action/reserveStock": "d6620e59d4bc8e66125ac6363b129c03ddf3fd470d14de98429110e3c9d52263",
              "action/sendEmail": "4266b484d43ad36a8a9a43b0ebd4f05f9d0bb60da750058af159a51e7835e865",
              "trigger/itemChanged": "3c741ed1e6a006b2e6b5ef2a8daf18987d31bf36b4d230aae1644317d4acb395"
            }
          },
          "policies": {
            "chargeCard": {
              "class": "ambiguous",
              "retry": {
                "attempts": 8,
                "first": 5000000,
                "factor": 2.0,
                "max": 300000000
              },
              "output": {
                "additionalProperties": false,
                "properties": {
                  "id": {
                    "type": "string"
                  }
                },
                "required": [
                  "id"
                ],
                "type": "object"
              }
            },
            "loadItem": {
              "class": "transactional",
              "retry": {
                "attempts": 8,
                "first": 5000000,
                "factor": 2.0,
                "max": 300000000
              },
              "output": {
                "additionalProperties": false,
                "properties": {
                  "minimum": {
                    "type": "integer"
                  },
                  "onHand": {
                    "type": "integer"
                  },
                  "state": {
                    "type": "string"
                  },
                  "supplier": {
                    "type": [
                      "string",
                      "null"
                    ]
                  },
                  "warehouses": {
                    "items": {
                      "additionalProperties": false,
                      "properties": {
                        "id": {
                          "type": "string"
                        }
                      },
                      "required": [
                        "id"
                      ],
                      "type": "object"
                    },
                    "type": "array"
                  }
                },
                "required": [
                  "onHand",
                  "minimum",
                  "state",
                  "warehouses"
                ],
                "type": "object"
              }
            },
            "priceOrder": {
              "class": "pure",
              "retry": {
                "attempts": 8,
                "first": 5000000,
                "factor": 2.0,
                "max": 300000000
              }
            },
            "reserveStock": {
              "class": "transactional",
              "retry": {
                "attempts": 8,
                "first": 5000000,
                "factor": 2.0,
                "max": 300000000
              },
              "output": {
                "type": "null"
              }
            },
            "sendEmail": {
              "class": "idempotent",
              "retry": {
                "attempts": 8,
                "first": 5000000,
                "factor": 2.0,
                "max": 300000000
              },
              "output": {
                "type": "null"
              }
            }
          },
          "inputs": {
            "item": {
              "type": "text",
              "required": true
            }
          },
          "triggers": {
            "itemChanged": {
              "event": "inventory.itemChanged",
              "with": {
                "item": {
                  "expr": {
                    "member": [
                      {
                        "name": "trigger"
                      },
                      "itemId"
                    ]
                  }
                }
              }
            }
          },
          "steps": [
            {
              "action": {
                "action": "loadItem",
                "config": {
                  "object": [
                    [
                      "item",
                      {
                        "expr": {
                          "member": [
                            {
                              "name": "inputs"
                            },
                            "item"
                          ]
                        }
                      }
                    ]
                  ]
                }
              },
              "saveAs": "stock",
              "line": 7
            },
            {
              "action": {
                "action": "priceOrder",
                "config": {
                  "object": [
                    [
                      "stock",
                      {
                        "expr": {
                          "name": "stock"
                        }
                      }
                    ]
                  ]
                }
              },
              "saveAs": "order",
              "line": 9
            },
            {
              "if": {
                "condition": {
                  "binary": [
                    "and",
                    {
                      "binary": [
                        "less",
                        {
                          "member": [
                            {
                              "name": "stock"
                            },
                            "onHand"
                          ]
                        },
                        {
                          "member": [
                            {
                              "name": "stock"
                            },
                            "minimum"
                          ]
                        }
                      ]
                    },
                    {
                      "call": [
                        "has",
                        [
                          {
                            "member": [
                              {
                                "name": "stock"
                              },
                              "supplier"
                            ]
                          }
                        ]
                      ]
                    }
                  ]
                },
                "then": [
                  {
                    "waitFor": {
                      "signal": {
                        "literal": "approval"
                      },
                      "key": {
                        "expr": {
                          "member": [
                            {
                              "name": "run"
                            },
                            "id"
                          ]
                        }
                      },
                      "timeout": 172800000000
                    },
                    "saveAs": "approval",
                    "line": 13
                  },
                  {
                    "action": {
                      "action": "chargeCard",
                      "config": {
                        "object": [
                          [
                            "amount",
                            {
                              "expr": {
                                "member": [
                                  {
                                    "name": "order"
                                  },
                                  "amount"
                                ]
                              }
                            }
                          ],
                          [
                            "currency",
                            {
                              "literal": "EUR"
                            }
                          ]
                        ]
                      },
                      "timeout": 30000000
                    },
                    "saveAs": "payment",
                    "line": 15
                  },
                  {
                    "forEach": {
                      "over": {
                        "expr": {
                          "member": [
                            {
                              "name": "stock"
                            },
                            "warehouses"
                          ]
                        }
                      },
                      "item": "warehouse",
                      "body": [
                        {
                          "action": {
                            "action": "reserveStock",
                            "config": {
                              "object": [
                                [
                                  "item",
                                  {
                                    "expr": {
                                      "member": [
                                        {
                                          "name": "inputs"
                                        },
                                        "item"
                                      ]
                                    }
                                  }
                                ],
                                [
                                  "warehouse",
                                  {
                                    "expr": {
                                      "member": [
                                        {
                                          "name": "warehouse"
                                        },
                                        "id"
                                      ]
                                    }
                                  }
                                ]
                              ]
                            }
                          },
                          "line": 21
                        }
                      ]
                    },
                    "line": 18
                  },
                  {
                    "succeed": {
                      "message": {
                        "text": [
                          {
                            "text": "Ordered "
                          },
                          {
                            "expr": {
                              "member": [
                                {
                                  "name": "inputs"
                                },
                                "item"
                              ]
                            }
                          },
                          {
                            "text": " ("
                          },
                          {
                            "expr": {
                              "member": [
                                {
                                  "name": "payment"
                                },
                                "id"
                              ]
                            }
                          },
                          {
                            "text": ")"
                          }
                        ]
                      }
                    },
                    "line": 22
                  }
                ],
                "otherwise": [
                  {
                    "switch": {
                      "on": {
                        "expr": {
                          "member": [
                            {
                              "name": "stock"
                            },
                            "state"
                          ]
                        }
                      },
                      "cases": [
                        {
                          "when": {
                            "literal": "discontinued"
                          },
                          "do": [
                            {
                              "fail": {
                                "message": {
                                  "literal": "No longer sold"
                                }
                              },
                              "line": 27
                            }
                          ]
                        }
                      ],
                      "default": [
                        {
                          "action": {
                            "action": "sendEmail",
                            "config": {
                              "object": [
                                [
                                  "subject",
                                  {
                                    "literal": "Nothing to do"
                                  }
                                ],
                                [
                                  "to",
                                  {
                                    "expr": {
                                      "member": [
                                        {
                                          "name": "context"
                                        },
                                        "owner"
                                      ]
                                    }
                                  }
                                ]
                              ]
                            }
                          },
                          "line": 29
                        }
                      ]
                    },
                    "line": 24
                  }
                ]
              },
              "line": 11
            }
          ],
          "bindings": {},
          "limits": {
            "loopItems": 100
          }
        }"#]].assert_eq(&serde_json::to_string_pretty(&plan).unwrap());
}
